"""`python -m skfairrank`: the versions that a bug report needs."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

REQUIRED = ("skfairrank", "numpy", "scipy", "scikit-learn", "pandas", "numba", "POT", "autograd")
OPTIONAL = (
    *("joblib", "dask", "distributed", "matplotlib", "jinja2", "lightgbm", "xgboost", "xgboost-cpu", "catboost"),
    *("polars", "pyarrow", "skops", "torch"),
)


def versions() -> dict[str, str]:
    """The versions of Python and of the packages, by name; "not installed" where one is not."""
    found = {"Python": platform.python_version(), "system": platform.platform()}
    for name in REQUIRED + OPTIONAL:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


if __name__ == "__main__":
    print("\n".join(f"{name:<12}  {found}" for name, found in versions().items()))
