"""The whole trade-off between utility and individual fairness: SenSTIR along a path of rho."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator

from skfairrank import scores
from skfairrank._arguments import names_queries
from skfairrank.adversary import ADVERSARIES
from skfairrank.plackett_luce import EXACT_LIMIT
from skfairrank.rankers import SenSTIRRanker
from skfairrank.rankers._progress import mean_utility
from skfairrank.training import Batch, PolicyGradient

__all__ = ["SenSTIRPath", "senstir_path"]

# The grid ends where utility can gain no more over a random order than this share of what it gains without the regulariser,
LEAST_GAIN = 0.2
# and begins where no more than this share of that gain is lost.
LEAST_LOSS = 0.05


@dataclass(eq=False)
class SenSTIRPath:
    """Solutions along rho.

    Attributes
    ----------
    rhos : ndarray of float, shape (n_rhos,)
        Ascending, as they are fitted.
    coefs : ndarray of float, shape (n_rhos, n_features)
    utilities : ndarray of float, shape (n_rhos,)
        Mean expected NDCG of the training queries where it is defined; exact for queries of up to 10 items, else from
        100 rankings.
    regularizers : ndarray of float, shape (n_rhos,)
        R without rho: in closed form, or for adversary="ascent" its mean over the last tenth of the steps.
    n_iters : ndarray of int, shape (n_rhos,)
    rankers : list of SenSTIRRanker
        The fitted ranker at each rho.
    """

    rhos: np.ndarray
    coefs: np.ndarray
    utilities: np.ndarray
    regularizers: np.ndarray
    n_iters: np.ndarray
    rankers: list

    def predict(self, X):
        """Scores of rows at each rho, shape (n_rhos, n_rows)."""
        return np.stack([ranker.predict(X) for ranker in self.rankers])


@names_queries
def senstir_path(X, y, *, qid, sensitive_features=None, rhos=None, n_rhos=40, estimator=None, **params):
    """Fit `SenSTIRRanker` along rho, each fit starting from the last one's weights.

    Parameters
    ----------
    X : array-like of float, shape (n_rows, n_features)
    y : array-like of float, shape (n_rows,)
        Relevance of each row, >= 0.
    qid : array-like, shape (n_rows,)
        Query of each row, in any order.
    sensitive_features : array-like, optional
        As for `SenSTIRRanker.fit`. The fair metric is learned once.
    rhos : array-like of float, shape (n_rhos,), optional
        Values of rho; sorted. Default: `n_rhos` values in geometric progression, from where the penalty hardly
        changes anything to where hardly anything but fair weights is left. (rho has no scale of its own: R is a sum
        over the items of a query, in squared units of scores. The paper uses .0003 to 100.)
    n_rhos : int, default=40
    estimator : SenSTIRRanker, optional
        Settings of the fits. Default: ``SenSTIRRanker(adversary="exact_box", solver="lbfgs")``, and where a query has more than
        `skfairrank.plackett_luce.EXACT_LIMIT` items ``solver="adam"`` with ``gradient="plrank"``, which samples.
    **params
        Other settings of the estimator, such as ``metric=`` or ``subspace_radius=``. With ``solver="adam"`` the first fit takes
        `max_iter` steps and all further ones together as many again.

    Returns
    -------
    path : SenSTIRPath

    Raises
    ------
    ValueError
        If rhos are negative, or the grid is to be found for an adversary without a closed form (give `rhos`).

    Examples
    --------
    >>> from skfairrank import senstir_path
    >>> from skfairrank.datasets import make_biased_ranking
    >>> task = make_biased_ranking(n_queries=50, random_state=0)
    >>> path = senstir_path(task.data, task.target, qid=task.qid, metric=[[0, 1]], n_rhos=5)
    >>> bool(path.regularizers[0] > 100 * path.regularizers[-1] and path.utilities[0] > path.utilities[-1])
    True
    """
    ranker = (
        SenSTIRRanker(adversary="exact_box", solver="lbfgs", max_iter=1000) if estimator is None else clone(estimator)
    )
    if not isinstance(ranker, SenSTIRRanker):
        raise TypeError(f"estimator is a {type(ranker).__name__}: give a SenSTIRRanker.")
    ranker.set_params(**params)
    ranker._validate_params()
    if rhos is None:
        if not isinstance(n_rhos, Integral) or n_rhos < 2:
            raise ValueError(f"n_rhos={n_rhos!r}: give an integer >= 2.")
        if not hasattr(ADVERSARIES[ranker.adversary], "dual_norm"):
            raise ValueError(
                'The grid of rho is found for adversaries in closed form only: give rhos=, or adversary="gaps", "exact_box" or '
                '"exact".'
            )
    else:
        rhos = np.sort(np.atleast_1d(np.asarray(rhos, dtype=np.float64)))
        if rhos.ndim != 1 or not len(rhos) or not np.isfinite(rhos).all() or rhos[0] < 0:
            raise ValueError(f"rhos must be finite numbers >= 0, got {rhos.tolist()}.")
    data, _ = ranker._training_data(X, y, qid)
    is_closed = hasattr(ADVERSARIES[ranker.adversary], "dual_norm")
    samples = data.queries.sizes.max() > EXACT_LIMIT or not is_closed
    if estimator is None and "solver" not in params and samples:
        ranker.set_params(solver="adam", **{"gradient": "plrank", "max_iter": 2000, **params})
    metric = ranker._learn_metric(data.X, sensitive_features)
    ranker.set_params(metric=FrozenEstimator(metric), warm_start=True)
    if rhos is None:
        rhos = _grid(clone(ranker), X, y, qid, data, int(n_rhos))
    fits: list[SenSTIRRanker] = []
    # Upwards: weights shrink along the path. Downwards, growing scores saturate the policy within the fair weights, and their
    # gradient no longer finds the way out.
    for rho in rhos:
        # After rho = 0 scores may have grown without bound, and saturate the policy: begin anew.
        ranker.set_params(rho=float(rho), warm_start=not fits or fits[-1].rho > 0).fit(X, y, qid=qid)
        if ranker._interrupted and fits:  # what it has so far is the path; fit has warned
            break
        fits.append(copy(ranker))  # the next fit replaces attributes, and leaves these alone
        if ranker._interrupted:
            break
        if ranker.solver == "adam" and len(fits) == 1 and len(rhos) > 1:
            ranker.set_params(max_iter=max(1, int(ranker.max_iter) // (len(rhos) - 1)), fair_start=0.0)
    return SenSTIRPath(
        rhos=rhos[: len(fits)],
        coefs=np.stack([fit.coef_ for fit in fits]),
        utilities=np.array([mean_utility(data, data.queries, fit.coef_) for fit in fits]),
        regularizers=np.array([_regularizer(fit, data) for fit in fits]),
        n_iters=np.array([fit.n_iter_ for fit in fits]),
        rankers=fits,
    )


def _regularizer(ranker, data) -> float:
    if not hasattr(ADVERSARIES[ranker.adversary], "dual_norm"):
        values = ranker.history_["regularizer"]
        return float(values[-max(1, len(values) // 10) :].mean())
    return _exact_regularizer(ranker, data, ranker.coef_)


def _exact_regularizer(ranker, data, w) -> float:
    adversary = ADVERSARIES[ranker.adversary](data, ranker.metric_, rng=None, **ranker._attack_settings())
    return adversary.attack(None, w, 0.0).regularizer


def _grid(ranker, X, y, qid, data, n_rhos: int) -> np.ndarray:
    """Values of rho between the two ends that the constants above define.

    Near w = 0 utility is linear, with slope g, and R is mean_size/2 times the square of a norm; so the most that utility gains is
    G^2 / (rho mean_size), with G the dual norm of g. That gives the upper end; the lower one is sought from there, by tens.
    """
    n_queries, order = data.queries.n_queries, data.queries.order
    batch = Batch(np.arange(n_queries), order, data.queries.offsets, data.gain[order], np.uint64(0))
    slope_of_scores, _, _ = PolicyGradient(data, "plrank", 100)(batch, np.zeros(len(order)))
    slope = np.empty(data.X.shape[1])
    scores.pull_back(data.X, order, slope_of_scores, 1.0 / n_queries, slope)
    settings = ranker._attack_settings()
    steepest = ADVERSARIES[ranker.adversary](data, ranker.metric.estimator, rng=None, **settings).dual_norm(slope)
    if not 0 < steepest < np.inf:
        raise ValueError(
            "No grid of rho can be found: utility does not depend on the features, or the regulariser leaves free what "
            "it depends on (a radius or epsilon is 0). Give rhos=."
        )
    # Utilities are means over the queries where they are defined, slope and R over all.
    share = float((np.maximum.reduceat(data.gain[order], data.queries.offsets[:-1]) > 0).mean())
    at_random = mean_utility(data, data.queries, np.zeros(data.X.shape[1]))
    coarse = ranker.set_params(early_stopping=False)

    def gain_at(rho):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a rough look is enough
            coarse.set_params(rho=float(rho)).fit(X, y, qid=qid)
        return share * (mean_utility(data, data.queries, coarse.coef_) - at_random)

    gain = gain_at(0.0)
    if gain <= 0:
        raise ValueError("No grid of rho can be found: the ranker gains nothing over a random order. Give rhos=.")
    high = steepest**2 / (float(data.queries.sizes.mean()) * LEAST_GAIN * gain)
    coarse.set_params(warm_start=False, tol=max(ranker.tol, 1e-4), max_iter=max(1, int(ranker.max_iter) // 5))
    low, lost_before = high / 10.0, 1.0
    for _ in range(9):
        lost = max(1.0 - gain_at(low) / gain, 1e-6)
        if lost <= LEAST_LOSS:
            # Between two tens, on a straight line in logarithms.
            part = np.log(lost_before / LEAST_LOSS) / np.log(lost_before / lost)
            low *= 10.0 ** (1.0 - min(max(part, 0.0), 1.0))
            break
        lost_before, low = lost, low / 10.0
    return np.geomspace(min(low, high / 10.0), high, n_rhos)
