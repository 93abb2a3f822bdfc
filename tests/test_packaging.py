"""What the package says about itself holds: bounds, version, imports."""

import ast
import importlib
import importlib.metadata
import re
import sys
import tomllib
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
# scikit-learn brings joblib, jinja2 markupsafe; llvmlite is numba's compiler, which it pins, as distributed pins dask.
DISTRIBUTION = {
    "sklearn": "scikit-learn", "ot": "pot", "xgboost": "xgboost-cpu", "llvmlite": "numba", "dask": "distributed",
    "joblib": "scikit-learn", "markupsafe": "jinja2",
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


def test_lower_bounds_are_the_versions_tested_with_the_oldest():
    pins = oldest_pins()
    bounds = {canonicalize_name(r.name): lower_bound(r) for r in map(Requirement, TESTED_WITH_OLDEST)}
    assert {name: pin for name, pin in pins.items() if name not in TRANSITIVE} == bounds


def test_imports_are_declared_and_late_where_they_are_slow():
    required = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    optional = {canonicalize_name(Requirement(line).name) for line in EXTRAS["plots"] + EXTRAS["test"]}
    for path in (ROOT / "skfairrank").rglob("*.py"):
        for module, inside in imports(path):
            if module in sys.stdlib_module_names or module == "skfairrank":
                continue
            name = canonicalize_name(DISTRIBUTION.get(module, module))
            assert name in required or (inside and name in optional), f"{path}: {module} is not declared"
            assert inside or module not in IMPORTED_LATE, f"{path}: import {module} inside the function that needs it"


def public_modules():
    """A module or package without a leading underscore in its path."""
    paths = (path.relative_to(ROOT / "skfairrank").with_suffix("") for path in (ROOT / "skfairrank").rglob("*.py"))
    names = {tuple(part for part in path.parts if part != "__init__") for path in paths}
    public = {name for name in names if not any(part.startswith("_") for part in name)}
    return sorted(".".join(("", *name)) for name in public)


@pytest.mark.parametrize("module", public_modules())
def test_api_page_lists_every_public_name(module):
    """Each once: what a package takes from a module of its own may be listed there."""
    text, listed = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md")), {}
    for name, block in re.findall(r"currentmodule:: (\S+)\n(.*?)```", text, re.DOTALL):
        listed[name] = set(re.findall(r"^   (\w+)$", block, re.MULTILINE))
    name = "skfairrank" + module
    here = importlib.import_module(name)
    names_here = public_names(here)
    elsewhere = {
        public for public in names_here for other, names in listed.items()
        if other != name and public in names and getattr(importlib.import_module(other), public) is getattr(here, public)
    }  # fmt: skip
    own = listed.get(name, set())
    assert own | elsewhere == names_here and not own & elsewhere


def test_versions_for_a_bug_report():
    needed = {Requirement(line).name for line in PROJECT["dependencies"]}
    assert needed <= set(versions()) and versions()["skfairrank"] == skfairrank.__version__
