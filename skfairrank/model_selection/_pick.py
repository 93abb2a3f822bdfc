"""Choosing one candidate of a search by two scorers: little loss in the first, then the best of the second."""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np

from skfairrank._checks import warn_caller

# Scores are means over folds: a loss that equals the bound but for rounding is within it.
_ROUNDING = 1e-12


def best_under(metric, *, then, max_loss=None, minimum=None, relative=False):
    """For `refit=` of a search with several scorers: the best candidate by `then` among those good enough by `metric`.

    Good enough is a mean test score s with

    - s >= s_best - `max_loss`, where s_best is the best mean test score among all candidates
      (s >= s_best - `max_loss` * ``|s_best|`` if `relative`), and
    - s >= `minimum`.

    Ties in `then` go to the better candidate by `metric`, and then to the earlier one.

    Parameters
    ----------
    metric, then : str
        Names of two scorers, the keys of the search's `scoring`. Greater is better, as everywhere in scikit-learn:
        errors and disparities come negated. So the mirror image, the most useful among the fairest, is the same call
        with the names exchanged, and "a disparity of at most .005" is ``minimum=-0.005``.
    max_loss : float >= 0, optional
        How far below the best score `metric` may be.
    minimum : float, optional
        How low the score `metric` may be. If no candidate reaches it, a UserWarning says so and the best candidate by
        `metric` is taken: a search that took hours should not end in an error.
    relative : bool, default=False
        Whether `max_loss` is a share of the best score.

    Returns
    -------
    picker : callable
        Takes ``cv_results_`` and returns an index. A small picklable object with the arguments as attributes. It picks from
        the ``cv_results_`` of a finished search as well, and ``picker.admissible(cv_results)`` tells which candidates are
        good enough.

    Raises
    ------
    ValueError
        If neither `max_loss` nor `minimum` is given, or `max_loss` is negative. On picking: if a scorer is missing from
        the results, or no candidate has finite scores by both.

    Notes
    -----
    A disparity of the Plackett-Luce *policy* as `then` picks the softest candidate: its draws come closest to chance, whatever
    the order of its scores. Where lists are sorted, take scorers of the sorted list (``policy="deterministic"``, such as
    `neg_group_exposure_difference_scorer`).

    A candidate with a score that is not finite (a failed fit) is left out altogether: it is not picked, and its other
    score is not the best.

    With a callable `refit` scikit-learn sets `best_index_`, `best_params_` and `best_estimator_`, but no `best_score_`,
    and ``search.score`` does not know which scorer to use: give `scoring` to an outer `cross_validate`. scikit-learn's
    halving searches take one scorer only and ignore a callable `refit`.

    Examples
    --------
    The first candidate has the best NDCG; the second is .008 below it, and the fairest within .01:

    >>> results = {"mean_test_ndcg": [0.810, 0.802, 0.780], "mean_test_gap": [-0.012, -0.006, -0.001]}
    >>> best_under("ndcg", max_loss=0.01, then="gap")(results)
    1
    >>> best_under("gap", max_loss=0.002, then="ndcg")(results)
    2
    >>> best_under("gap", minimum=-0.01, then="ndcg")(results)
    1
    """
    if max_loss is None and minimum is None:
        raise ValueError(f"best_under({metric!r}, ...) got neither max_loss nor minimum: give at least one of them.")
    for name, value in (("max_loss", max_loss), ("minimum", minimum)):
        if value is not None and not isinstance(value, numbers.Real):
            raise TypeError(f"{name}={value!r}: give a number.")
    if max_loss is not None and not max_loss >= 0:
        raise ValueError(f"max_loss={max_loss!r}: give a number >= 0, how far below the best {metric!r} may be.")
    if minimum is not None and np.isnan(minimum):
        raise ValueError(f"minimum={minimum!r}: give a number, the least acceptable {metric!r}.")
    if relative and max_loss is None:
        raise ValueError("relative=True is about max_loss, which is not given: give it, or leave relative out.")
    return _BestUnder(metric, then, max_loss, minimum, relative)


def mean_test_scores(cv_results, scorer: str, *, needed_by: str = "") -> np.ndarray:
    """Mean test score of each candidate by one of the search's scorers, shape (n_candidates,)."""
    if f"mean_test_{scorer}" not in cv_results:
        names = sorted(key.removeprefix("mean_test_") for key in cv_results if key.startswith("mean_test_"))
        wanted = f", which {needed_by} needs" if needed_by else ""
        raise ValueError(f"The search has no scorer {scorer!r}{wanted}; it has {names}. Name them in scoring={{...}}.")
    return np.asarray(cv_results[f"mean_test_{scorer}"], dtype=np.float64)


@dataclass(frozen=True, repr=False)
class _BestUnder:
    metric: str
    then: str
    max_loss: float | None = None
    minimum: float | None = None
    relative: bool = False

    def __call__(self, cv_results) -> int:
        """Index of the candidate picked."""
        scores, then, admissible = self._read(cv_results)
        if not admissible.any():
            best = np.nanmax(np.where(np.isfinite(then), scores, np.nan))
            warn_caller(
                f"No candidate has a mean test {self.metric!r} of at least {self.minimum:g}: the best has {best:g} and "
                "is taken. Search a wider grid, or lower the minimum.",
            )
            admissible = scores == best
        candidates = np.flatnonzero(admissible)
        # lexsort is stable and ascending by its last key first; the negated scores put the best in front.
        return int(candidates[np.lexsort((-scores[candidates], -then[candidates]))[0]])

    def admissible(self, cv_results) -> np.ndarray:
        """Which candidates are good enough by `metric` (and have finite scores), shape (n_candidates,)."""
        return self._read(cv_results)[2]

    def _read(self, cv_results):
        scores, then = (mean_test_scores(cv_results, name, needed_by=repr(self)) for name in (self.metric, self.then))
        admissible = np.isfinite(scores) & np.isfinite(then)
        if not admissible.any():
            raise ValueError(
                f"No candidate has finite mean test scores by both {self.metric!r} and {self.then!r}, so none can be "
                'picked: search with error_score="raise" to see the first error.'
            )
        best = scores[admissible].max()
        rounding, unit = _ROUNDING * max(1.0, abs(best)), abs(best) if self.relative else 1.0
        if self.max_loss is not None:
            admissible &= scores >= best - self.max_loss * unit - rounding
        if self.minimum is not None:
            admissible &= scores >= self.minimum - rounding
        return scores, then, admissible

    def __repr__(self):
        bounds = {"max_loss": self.max_loss, "minimum": self.minimum, "relative": self.relative or None}
        given = "".join(f", {name}={value!r}" for name, value in bounds.items() if value is not None)
        return f"best_under({self.metric!r}, then={self.then!r}{given})"
