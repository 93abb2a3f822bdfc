"""Warnings that point at the line of the user's code they are about."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings

import sklearn

__all__ = ["warn_caller"]

# Files of this package, and of what stands between it and the user: decorators of `fit`, searches, parallel loops.
_INSIDE = tuple(
    os.path.dirname(str(module.__file__)) + os.sep
    for module in (sys.modules[__package__], sklearn, sys.modules.get("joblib"))  # scikit-learn has imported joblib
    if module is not None
)


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first frame outside this package and scikit-learn."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_inside(filename: str) -> bool:
    return filename.startswith(_INSIDE) or filename == contextlib.__file__
