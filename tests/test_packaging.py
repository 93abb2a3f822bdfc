"""What the package says about itself holds: bounds, version, imports."""

import ast
import importlib
import importlib.metadata
import re
import sys
import tomllib
from configparser import ConfigParser
from pathlib import Path

import pytest
from _data import public_names
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import skfairrank
from skfairrank.__main__ import versions

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
TESTED_WITH_OLDEST = PROJECT["dependencies"] + [
    line for name in ("plots", "dask", "parquet", "test") for line in EXTRAS[name]
]
# Pinned for a dependency's sake, not ours; the file says why.
TRANSITIVE = {"pyparsing"}
# Where a module's name is not its distribution's.
# llvmlite is numba's compiler, which it pins, as distributed pins dask.
DISTRIBUTION = {
    "sklearn": "scikit-learn", "ot": "pot", "xgboost": "xgboost-cpu", "llvmlite": "numba", "dask": "distributed",
}  # fmt: skip
# Slow to import, or only some users have it: imported by the function that needs it, never by `import skfairrank`.
IMPORTED_LATE = {
    "ot",
    "matplotlib",
    "polars",
    "lightgbm",
    "xgboost",
    "catboost",
    "autograd",
    "dask",
    "distributed",
    "pyarrow",
}


def lower_bound(requirement):
    """The version behind >= of a requirement that has nothing else."""
    (specifier,) = requirement.specifier
    assert specifier.operator == ">=", f"{requirement}: write a lower bound, name>=version"
    return specifier.version


def oldest_pins():
    lines = (ROOT / ".ci" / "oldest-requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = {}
    for line in filter(None, (line.partition("#")[0].strip() for line in lines)):
        requirement = Requirement(line)
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", f"{line}: pin one version, name==version"
        pins[canonicalize_name(requirement.name)] = specifier.version
    return pins


def imports(path):
    """(module, inside a function) of every import of a file, relative imports and type-checking blocks left out."""
    found = []

    def visit(node, inside):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            found.extend((alias.name.partition(".")[0], inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.append((node.module.partition(".")[0], inside))
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(ast.parse(path.read_text(encoding="utf-8")), False)
    return found


@pytest.mark.parametrize("requirement", [Requirement(line) for line in TESTED_WITH_OLDEST], ids=str)
def test_lower_bound_is_the_version_tested_with_the_oldest(requirement):
    assert lower_bound(requirement) == oldest_pins().get(canonicalize_name(requirement.name))


def test_every_oldest_pin_belongs_to_a_dependency():
    declared = {canonicalize_name(Requirement(line).name) for line in TESTED_WITH_OLDEST}
    assert set(oldest_pins()) == declared | TRANSITIVE


def test_bounds_agree_between_extras():
    bounds = {}
    for line in PROJECT["dependencies"] + [line for name in EXTRAS if name != "lint" for line in EXTRAS[name]]:
        requirement = Requirement(line)
        bounds.setdefault(canonicalize_name(requirement.name), set()).add(lower_bound(requirement))
    assert {name: found for name, found in bounds.items() if len(found) > 1} == {}


def test_version_stands_in_one_place():
    assert "version" not in PROJECT and PROJECT["dynamic"] == ["version"]
    assert PYPROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "skfairrank.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", skfairrank.__version__)
    assigned = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "skfairrank").rglob("*.py"))
        if re.search(r"^__version__\s*=", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert assigned == ["skfairrank/__init__.py"]
    literal = re.compile(rf"(version|release)\s*=\s*['\"]?{re.escape(skfairrank.__version__)}")
    for name in ("setup.cfg", "docs/conf.py"):
        assert not literal.search((ROOT / name).read_text(encoding="utf-8")), name


def test_changelog_has_a_place_for_the_next_change():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[?([^\]\s]+)", text, re.MULTILINE)
    assert headings and headings[0] in ("Unreleased", skfairrank.__version__)


def test_tools_check_the_oldest_python_supported():
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert PYPROJECT["tool"]["mypy"]["python_version"] == oldest
    assert PYPROJECT["tool"]["ruff"]["target-version"] == "py" + oldest.replace(".", "")
    assert f"Programming Language :: Python :: {oldest}" in PROJECT["classifiers"]


def test_warnings_are_errors():
    config = ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    first, *exceptions = config["tool:pytest"]["filterwarnings"].split("\n")[1:]
    assert first == "error"
    # action:message:category at least: an exception never lets a whole category pass.
    assert all(line.split(":")[0] == "ignore" and line.split(":")[1] for line in exceptions), exceptions


@pytest.mark.parametrize(
    "path", sorted((ROOT / "skfairrank").rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_imports_are_declared_and_late_where_they_are_slow(path):
    required = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    optional = {canonicalize_name(Requirement(line).name) for line in EXTRAS["plots"] + EXTRAS["test"]}
    for module, inside in imports(path):
        if module in sys.stdlib_module_names or module == "skfairrank":
            continue
        name = canonicalize_name(DISTRIBUTION.get(module, module))
        assert name in required or (inside and name in optional), f"{module} is not declared in pyproject.toml"
        assert inside or module not in IMPORTED_LATE, f"import {module} inside the function that needs it"
        inner = path.parent.name == "_kernels" or path.name == "_threads.py"
        assert module not in ("numba", "llvmlite") or inner, f"{module} outside of _kernels"


def public_modules():
    """A module or package without a leading underscore in its path; `python -m skfairrank.demo` is a command."""
    paths = (path.relative_to(ROOT / "skfairrank").with_suffix("") for path in (ROOT / "skfairrank").rglob("*.py"))
    names = {tuple(part for part in path.parts if part != "__init__") for path in paths}
    public = {name for name in names if not any(part.startswith("_") for part in name)} - {("demo",)}
    return sorted(".".join(("", *name)) for name in public)


@pytest.mark.parametrize("module", public_modules())
def test_api_page_lists_every_public_name(module):
    """Each once: what a package takes from a module of its own may be listed there."""
    text, listed = (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), {}
    for name, block in re.findall(r"currentmodule:: (\S+)\n(.*?)```", text, re.DOTALL):
        listed[name] = set(re.findall(r"^   (\w+)$", block, re.MULTILINE))
    name = "skfairrank" + module
    here = importlib.import_module(name)
    names_here = public_names(here)
    elsewhere = {
        public for public in names_here for other, names in listed.items()
        if other != name and public in names and getattr(importlib.import_module(other), public) is getattr(here, public)
    }  # fmt: skip
    assert listed[name] | elsewhere == names_here and not listed[name] & elsewhere


def test_versions_for_a_bug_report():
    """Every dependency is told of, by the name under which it is installed."""
    needed = {Requirement(line).name for line in PROJECT["dependencies"]}
    told = versions()
    assert needed | {"skfairrank", "Python"} <= set(told) and told["skfairrank"] == skfairrank.__version__
    # Of what is used beside them all but the tests' own tools.
    partners = {Requirement(line).name for name in ("plots", "dask", "parquet", "test") for line in EXTRAS[name]}
    assert partners - {"hypothesis", "pytest"} <= set(told)
    assert all(told[name] == importlib.metadata.version(name) for name in needed | (partners & set(told)))
