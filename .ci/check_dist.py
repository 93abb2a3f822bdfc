"""Looks into the wheel and the source distribution of a folder, and uses the wheel in an empty environment: check_dist.py FOLDER.

The empty environment holds what pip installs for the wheel and nothing else, so that a missing dependency or file shows.
"""

import pathlib
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile

# Done outside of the repository, by the installed package.
USE = """
import importlib.resources, sys
import skfairrank
from skfairrank.datasets import make_biased_ranking
from skfairrank.metrics import ndcg_score
task = make_biased_ranking(random_state=0)
ranker = skfairrank.PlackettLuceRanker(max_iter=20, random_state=0)  # compiles less than a fair one
ranker.fit(task.data, task.target, qid=task.qid)
ndcg = ndcg_score(task.target, ranker.predict(task.data), qid=task.qid)
assert 0.8 < ndcg <= 1, ndcg
assert importlib.resources.files(skfairrank).joinpath("py.typed").is_file()
assert skfairrank.__file__.startswith(sys.prefix), skfairrank.__file__
"""
ROOT = pathlib.Path(__file__).resolve().parent.parent


def only(folder, pattern):
    """The one file of that pattern."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder} has {len(found)} files {pattern}, and one is expected: remove the folder and build again.")
    return found[0]


def check_files(wheel, source):
    """The wheel has every module of the package and its license, the source distribution these and no tests."""
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "skfairrank").rglob("*.py")} | {
        "skfairrank/py.typed",
        "skfairrank/inspection/report.html.jinja",
    }
    with zipfile.ZipFile(wheel) as archive:
        built = set(archive.namelist())
    about = {name for name in built if ".dist-info/" in name}
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    faults = {
        "the wheel lacks": modules - built,
        "the wheel should not have": built - about - modules,
        "the source distribution lacks": (modules | {"LICENSE", "README.md", "pyproject.toml", "CHANGELOG.md"})
        - packed,
        "the source distribution should not have": {
            name for name in packed if name.startswith(("tests", "benchmarks", "examples", "docs", "."))
        },
    }
    if not any(name.endswith("/LICENSE") for name in about):
        faults["the wheel lacks"] |= {"LICENSE"}
    faults = {what: names for what, names in faults.items() if names}
    if faults:
        sys.exit("\n".join(f"{what}: {', '.join(sorted(names))}" for what, names in faults.items()))


def use(wheel, folder):
    """Install the wheel in an empty environment, and work with it in an empty folder."""
    venv.create(folder / "empty", with_pip=True)
    python = folder / "empty" / "bin" / "python"
    (folder / "elsewhere").mkdir()

    def run(*arguments):
        return subprocess.run(
            [python, "-I", *arguments], cwd=folder / "elsewhere", check=True, capture_output=True, text=True
        )

    run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", wheel)
    run("-m", "pip", "check")
    run("-W", "error", "-c", USE)
    told = run("-m", "skfairrank").stdout
    if wheel.name.split("-")[1] not in told:
        sys.exit(f"python -m skfairrank does not tell the version of {wheel.name}, but:\n{told}")


def main():
    folder = pathlib.Path(sys.argv[1])
    wheel, source = only(folder, "*.whl").resolve(), only(folder, "*.tar.gz")
    check_files(wheel, source)
    with tempfile.TemporaryDirectory() as empty:
        use(wheel, pathlib.Path(empty))
    print(f"{wheel.name} and {source.name} are complete, and the wheel works in an empty environment.")


if __name__ == "__main__":
    main()
