"""By what a run of training is known again: texts that are the same for the same ranker on the same data, in any process."""

from __future__ import annotations

import functools
import hashlib
import numbers
import platform
from types import CodeType

import joblib
import numba
import numpy as np
import scipy
import sklearn

import skfairrank

__all__ = ["described", "fingerprint", "versions"]

# A run may go on in more processes, and tell more of itself.
_WITHOUT_EFFECT = ("n_jobs", "verbose")
# What of a regulariser is part of the training state, or made from the rest.
_IN_STATE = ("rng", "multiplier", "prepared")
# Longer texts are named by their hash.
_LONGEST = 300


def fingerprint(ranker, problem, state, *, is_warm: bool) -> dict:
    """Texts by their names, in the order in which they are to be compared.

    Parameters
    ----------
    ranker : PlackettLuceRanker
    problem : skfairrank._solvers.Problem
    state : skfairrank._solvers.TrainingState
        Before the first step.
    is_warm : bool
        Whether training starts from an earlier fit, which is then a part of what it is.
    """
    texts = {"class": type(ranker).__qualname__}
    parameters = ranker.get_params(deep=False)
    texts |= {name: described(value) for name, value in parameters.items() if name not in _WITHOUT_EFFECT}
    texts |= _of_data(problem.batches)
    kept = {name: value for name, value in vars(problem.regularizer).items() if name not in _IN_STATE}
    texts["regularizer"] = described(kept)
    texts["start"] = described([state.theta, state.multiplier]) if is_warm else "at random"
    return texts


def versions() -> dict:
    """Of what may change the last bits of a result."""
    modules = {"skfairrank": skfairrank, "numpy": np, "scipy": scipy, "scikit-learn": sklearn, "numba": numba}
    return {**{name: module.__version__ for name, module in modules.items()}, "machine": platform.machine()}


def _of_data(batches) -> dict:
    """Of every cell that training reads, query by query, so that it does not matter how the rows of queries are interleaved."""
    parts = {name: hashlib.blake2b(digest_size=8) for name in ("X", "y", "qid", "query_weight")}
    dtype, n_rows = "", 0
    for batch in batches.in_order():
        rows = batch.X[batch.rows]
        dtype, n_rows = rows.dtype.name, n_rows + len(rows)
        parts["X"].update(rows.tobytes())
        for values in (batch.gain, batch.stay):
            parts["y"].update(values.tobytes())
        parts["qid"].update(np.diff(batch.offsets).tobytes())
        parts["query_weight"].update(batch.weight.tobytes())
    shapes = {
        "X": f"{dtype} of shape ({n_rows}, {batches.n_features})",
        "y": f"gains of {n_rows} rows",
        "qid": f"{len(batches.sizes)} queries",
        "query_weight": "weights",
    }
    return {name: f"{shapes[name]}, hash {parts[name].hexdigest()}" for name in parts}


def described(value) -> str:
    """A text that is the same for equal values: of parameters, of functions by their code, of objects by their attributes."""
    text = _described(value, ())
    return text if len(text) <= _LONGEST else f"{type(value).__name__} of hash {_hash(text.encode())}"


def _hash(content) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _described(value, within: tuple) -> str:
    if value is None or isinstance(value, (bool, str, bytes)):
        return repr(value)
    if isinstance(value, numbers.Integral):
        return repr(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if any(value is outer for outer in within):
        return "..."  # an object that holds itself
    within = (*within, value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"{value.dtype} of shape {value.shape}, hash {_hash(value.tobytes())}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_described(entry, within)}' for key, entry in value.items())}}}"
    if isinstance(value, np.ndarray):
        return _described(value.tolist(), within)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_described(entry, within) for entry in value)}]"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, functools.partial):
        return f"partial({_described([value.func, value.args, value.keywords], within)})"
    if isinstance(value, CodeType):
        constants = [entry for entry in value.co_consts if not isinstance(entry, frozenset)]
        return f"code {_hash(value.co_code)} {value.co_names} {_described(constants, within)}"
    if hasattr(value, "__code__"):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        parts = [value.__code__, value.__defaults__, value.__kwdefaults__, cells, getattr(value, "__self__", None)]
        return f"{value.__qualname__}{_described(parts, within)}"
    if isinstance(value, np.random.Generator):
        return f"Generator {_described(value.bit_generator.state, within)}"
    if isinstance(value, np.random.RandomState):
        return f"RandomState {_described(value.get_state(), within)}"
    if _is_told_by_attributes(value):
        return f"{type(value).__qualname__}({_described(vars(value), within)})"
    try:
        return f"{type(value).__qualname__} of hash {joblib.hash(value)}"
    except Exception:  # whatever its parts raise where they cannot be pickled
        return f"{type(value).__qualname__}({_described(getattr(value, '__dict__', None), within)})"


def _is_told_by_attributes(value) -> bool:
    """Of scikit-learn's estimators and ours, which may hold functions that joblib cannot hash."""
    return hasattr(value, "__dict__") and type(value).__module__.split(".")[0] in ("skfairrank", "sklearn")
