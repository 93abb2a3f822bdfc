"""What can be set on a ranker to keep its training while it runs: callbacks of scikit-learn, which has them from 1.9 on."""

from __future__ import annotations

import os
from numbers import Integral
from pathlib import Path

import sklearn
from sklearn.utils.fixes import parse_version

__all__ = ["Checkpoint"]


class Checkpoint:
    """Keeps the training of a ranker in a file; the same script, run again, goes on from there.

    The file holds all that the next step depends on: parameters, Adam's moments, lambda, the states of random generators, the
    queries left of the pass, the looks of early stopping, and the history. So the result is that of a fit that was not
    interrupted, to the bit. After training the file holds the result, and the same fit returns it at once.

    Set it with ``ranker.set_callbacks(Checkpoint("run.npz"))``. It serves `PlackettLuceRanker`, `SenSTIRRanker` and
    `FairPGRanker` with ``solver="adam"`` and ``n_init=1``.

    Parameters
    ----------
    path : str or path
        A file, or an existing folder. In a folder each fit has a file of its own, which is named by what the fit is; so one
        folder serves a whole search, and a search that was interrupted begins with what is done.
    every : int, optional
        Steps after which the file is written again. None: a fiftieth of `max_iter`.

    Raises
    ------
    ImportError
        If scikit-learn is older than 1.9.
    TypeError, ValueError
        If `path` is no name, or `every` no number of steps.

    Notes
    -----
    A file belongs to one run: to a class of ranker, its parameters (without `n_jobs` and `verbose`), the training data to the
    last cell, and what was learned of sensitive features. `fit` raises a ValueError that says what differs, and never overwrites
    the file of another run. Rows may come in another order, if each query keeps the order of its own rows. With
    ``random_state=None`` training goes on with the random numbers of the file. Where a callback ended it, the next fit goes on.

    Examples
    --------
    >>> from skfairrank import PlackettLuceRanker
    >>> from skfairrank.callbacks import Checkpoint
    >>> ranker = PlackettLuceRanker().set_callbacks(Checkpoint("run.npz", every=500))  # doctest: +SKIP
    """

    def __init__(self, path, *, every=None):
        if parse_version(sklearn.__version__) < parse_version("1.9"):
            raise ImportError(
                f"Checkpoint is a callback, and scikit-learn has callbacks from version 1.9 on; this is {sklearn.__version__}: "
                "pip install -U scikit-learn. (Training in parts, by partial_fit, works with any version.)"
            )
        if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
            raise TypeError(f"path={path!r}: give the name of a file, such as 'run.npz', or of a folder.")
        if every is not None and (not isinstance(every, Integral) or isinstance(every, bool) or every < 1):
            raise ValueError(f"every={every!r}: give a number of training steps >= 1, or None.")
        self.path = path
        self.every = every

    def __repr__(self):
        return f"Checkpoint({os.fspath(self.path)!r}, every={self.every})"

    def file_for(self, name: str) -> Path:
        """The file of a fit with this name.

        Raises
        ------
        ValueError
            If there is no such folder.
        """
        path = Path(self.path)
        if path.is_dir():
            return path / f"{name}.npz"
        folder = path if os.fspath(self.path).endswith(("/", os.sep)) else path.parent
        if not folder.is_dir():
            raise ValueError(f"{self!r}: there is no folder {str(folder)!r}. Create it first.")
        return path

    # What scikit-learn asks of a callback. The rankers ask for the file themselves, at the moments between two steps.

    def setup(self, estimator, context):
        """Refuse estimators that cannot go on from a state of training."""
        if not hasattr(estimator, "_check_checkpoint"):
            raise TypeError(
                f"Checkpoint keeps the training of PlackettLuceRanker, SenSTIRRanker and FairPGRanker, and was set on "
                f"{type(estimator).__name__}: set it on the ranker itself, also where that is a part of another estimator."
            )
        estimator._check_checkpoint()

    def teardown(self, estimator, context):
        """Nothing is left open."""

    def on_fit_task_begin(self, estimator, context):
        """Nothing is kept before the first step."""

    def on_fit_task_end(self, estimator, context):
        """Steps are kept when they are taken."""
