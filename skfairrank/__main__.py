"""`python -m skfairrank`: the versions that a bug report needs."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

# What the package needs, then what it can use.
PACKAGES = ("skfairrank", "numpy", "scipy", "scikit-learn", "pandas", "numba", "POT", "autograd")
PARTNERS = (
    "joblib",
    "dask",
    "distributed",
    "matplotlib",
    "lightgbm",
    "xgboost",
    "xgboost-cpu",
    "catboost",
    "polars",
    "pyarrow",
    "skops",
    "torch",
)


def versions() -> dict[str, str]:
    """Of Python and the packages, by name; "not installed" where one is not."""
    found = {"Python": platform.python_version(), "system": platform.platform()}
    for name in (*PACKAGES, *PARTNERS):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


if __name__ == "__main__":
    for name, found in versions().items():
        print(f"{name:<12}  {found}")
