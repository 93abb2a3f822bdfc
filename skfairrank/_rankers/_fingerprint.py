"""By what a run of training is known again: texts that are the same for the same ranker on the same data, in any process."""

from __future__ import annotations

import functools
import hashlib
import numbers
import pickle
import platform
from importlib.metadata import version
from types import CodeType, ModuleType

import numpy as np

import skfairrank
from skfairrank.ranking_files._row_file import RowFile

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


@functools.cache
def versions() -> dict:
    """Of what may change the last bits of a result."""
    others = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
    return {"skfairrank": skfairrank.__version__, **others, "machine": platform.machine()}


def _of_data(batches) -> dict:
    """Of every cell that training reads, query by query, so that it does not matter how the rows of queries are interleaved."""
    parts = {name: hashlib.blake2b(digest_size=8) for name in ("X", "y", "qid", "query_weight")}
    dtype, n_rows = "", 0
    for batch in batches.in_order():
        rows = batch.X[batch.rows]
        dtype, n_rows = rows.dtype.name, n_rows + len(rows)
        parts["X"].update(rows.tobytes())
        for values in (batch.gain, batch.continuation):
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

    def inner(*parts):
        return ", ".join(_described(part, (*within, value)) for part in parts)

    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return inner(value.tolist())
        return f"{value.dtype} of shape {value.shape}, hash {_hash(value.tobytes())}"
    if isinstance(value, RowFile):  # by its rows, since each process has another name for it
        return f"{value.dtype} of shape {value.shape}, hash {value.digest()}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {inner(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{inner(*value)}]"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(inner, value)))}}}"
    if isinstance(value, np.random.Generator):
        return f"Generator({inner(value.bit_generator.state)})"
    if isinstance(value, np.random.RandomState):
        return f"RandomState({inner(value.get_state())})"
    if isinstance(value, functools.partial):
        return f"partial({inner(value.func, value.args, value.keywords)})"
    if isinstance(value, (type, ModuleType)):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    if isinstance(value, CodeType):
        return f"code {_hash(value.co_code)}({inner(value.co_names, value.co_consts)})"
    if hasattr(value, "__code__"):
        captured = [cell.cell_contents for cell in value.__closure__ or () if cell != type(cell)()]
        bound = getattr(value, "__self__", None)
        return f"{value.__name__}({inner(value.__code__, value.__defaults__, value.__kwdefaults__, captured, bound)})"
    name = type(value).__qualname__
    if hasattr(value, "columns") and hasattr(value, "__array__"):  # tables, which keep their values in a cache or two
        return f"{name}({inner(list(value.columns), np.asarray(value))})"
    if getattr(value, "__dict__", None):
        return f"{name}({inner(vars(value))})"
    return f"{name} of hash {_hash(_pickled(value))}"


def _pickled(value) -> bytes:
    """Of what keeps its state in no attribute."""
    try:
        return pickle.dumps(value, protocol=4)
    except Exception:  # whatever it raises where it cannot be pickled: then its kind must do
        return b""
