"""All benchmarks, one after the other, each in a process of its own: python benchmarks/run.py [--quick] [names ...]

Every script prints tables in Markdown and can be run alone. inFairness takes part where it is installed:
pip install .[benchmarks]. With --update FILE the tables of the same titles in that file, such as docs/performance.md, are
replaced.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SCRIPTS = (
    "training_step", "networks", "shared_starts", "solvers", "nearest", "sampling", "scoring", "memory", "setup_time", "threads",
    "scaling", "boosting", "out_of_core", "several_machines",
)  # fmt: skip


def run(name: str, options: list[str]) -> list[str] | None:
    """Run one script; its lines, which are shown as they come, or None if it failed."""
    command, lines = [sys.executable, str(FOLDER / f"{name}.py"), *options], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return None if process.returncode else lines


def tables(lines: list[str]) -> dict[str, list[str]]:
    """The tables of a Markdown text by the title above them."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in lines:
        if line.startswith("#"):
            title = line.strip("# \n")
        elif line.startswith("|"):
            found.setdefault(title, []).append(line)
    return found


def update(path: Path, new: dict[str, list[str]], machine: str) -> None:
    """Replace tables of a Markdown file by those of the same title, and the line that says when and where they were measured."""
    out, title, written = [], "", set()
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith("#"):
            title = line.strip("# \n")
        if line.startswith("Measured: "):
            line = f"Measured: {machine}\n"
        if line.startswith("|") and title in new:
            if title not in written:
                out += new[title]
                written.add(title)
            continue
        out.append(line)
    path.write_text("".join(out), encoding="utf-8")
    for title in set(new) - written:
        print(f"{path} has no table titled: {title}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help="scripts to run (default: all): " + ", ".join(SCRIPTS))
    parser.add_argument("--quick", action="store_true", help="a smaller share of the work")
    parser.add_argument("--update", type=Path, metavar="FILE", help="a Markdown file whose tables to replace")
    options = parser.parse_args()
    unknown = set(options.names) - set(SCRIPTS)
    if unknown:
        parser.error(f"no script named {', '.join(sorted(unknown))}: choose among {', '.join(SCRIPTS)}")
    failed, found, machine = [], {}, ""
    for name in options.names or SCRIPTS:
        start = time.perf_counter()
        print(f"\n## {name}\n", flush=True)
        passed_on = ["--quick"] * options.quick
        if name == "scaling" and options.update is not None:  # the picture belongs to the page
            passed_on += ["--picture", str(options.update.parent / "images" / "scaling.png")]
        lines = run(name, passed_on)
        print(f"\n{name}.py: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        if lines is None:
            failed.append(name)
        else:
            found |= tables(lines)
            machine = lines[0].strip()
    if options.update is not None:
        update(options.update, found, machine)
    if failed:
        print(f"\nFailed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
