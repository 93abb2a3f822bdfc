"""All benchmarks, one after the other, each in a process of its own: python benchmarks/run.py [--quick] [names ...]

Every script prints tables in Markdown and can be run alone. inFairness takes part where it is installed:
pip install .[benchmarks]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SCRIPTS = (
    "training_step", "shared_starts", "solvers", "nearest", "sampling", "scoring", "memory", "setup_time", "threads", "kernels",
    "scaling",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help="scripts to run (default: all): " + ", ".join(SCRIPTS))
    parser.add_argument("--quick", action="store_true", help="a smaller share of the work")
    options = parser.parse_args()
    unknown = set(options.names) - set(SCRIPTS)
    if unknown:
        parser.error(f"no script named {', '.join(sorted(unknown))}: choose among {', '.join(SCRIPTS)}")
    failed = []
    for name in options.names or SCRIPTS:
        path, start = FOLDER / f"{name}.py", time.perf_counter()
        print(f"\n## {name}\n", flush=True)
        done = subprocess.run([sys.executable, str(path)] + ["--quick"] * options.quick)
        print(f"\n{path.name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        if done.returncode:
            failed.append(name)
    if failed:
        print(f"\nFailed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
