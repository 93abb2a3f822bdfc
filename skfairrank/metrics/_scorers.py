"""Metrics as scikit-learn scorers that receive `qid` and what else they need by metadata routing."""

from __future__ import annotations

import copy
import inspect

from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import _num_samples

from skfairrank._candidates import counterparts
from skfairrank._folds import warn_if_queries_are_cut
from skfairrank._queries import REMEDY
from skfairrank.metrics._attention import attention_inequity, expected_exposure_loss
from skfairrank.metrics._exposure import (
    group_exposure_difference,
    group_exposure_disparity,
    individual_exposure_disparity,
)
from skfairrank.metrics._group_shares import attention_weighted_rank_fairness, group_ndkl, group_skew
from skfairrank.metrics._kendall import kendall_tau_score
from skfairrank.metrics._ndcg import ndcg_score, stochastic_ndcg_score
from skfairrank.metrics._predictions import own_policy, ranking_scores
from skfairrank.metrics._utility import utility_score

__all__ = [
    "QueryScorer",
    "attention_weighted_rank_fairness_scorer",
    "kendall_tau_scorer",
    "make_attention_inequity_scorer",
    "make_attention_weighted_rank_fairness_scorer",
    "make_expected_exposure_loss_scorer",
    "make_group_exposure_difference_scorer",
    "make_group_exposure_disparity_scorer",
    "make_group_ndkl_scorer",
    "make_group_skew_scorer",
    "make_individual_exposure_disparity_scorer",
    "make_kendall_tau_scorer",
    "make_ndcg_scorer",
    "make_stochastic_ndcg_scorer",
    "make_utility_scorer",
    "ndcg_scorer",
    "neg_attention_inequity_scorer",
    "neg_expected_exposure_loss_scorer",
    "neg_group_exposure_difference_scorer",
    "neg_group_exposure_disparity_scorer",
    "neg_group_ndkl_scorer",
    "neg_group_skew_scorer",
    "neg_individual_exposure_disparity_scorer",
    "stochastic_ndcg_scorer",
]


class QueryScorer:
    """A metric of scores and queries as a scikit-learn scorer, ``scorer(estimator, X, y, *, qid, ...)``.

    The estimator's scores are what its `predict` returns; a classifier's are its `decision_function`. Pipelines and
    fitted searches will do; steps that request `qid` in `transform` get it, for hypothetical rows that of the rows whose
    place they take. The metadata that the metric takes (`qid`, `query_weight`, for some `sensitive_features`) are requested
    by default, so in a search with metadata routing nothing needs to be set. A `query_weight` by row is cut with the rows, a
    mapping from query id to number is handed on as it is. Without `qid` the scorer raises: rows of
    several queries are never read as one.

    Every scorer requests `sensitive_features` too, for estimators that ask for them when they predict, as those of
    `skfairrank.postprocessing` do; others do not see them. An estimator that draws its rankings by a rule of its own, which
    has a method `policy`, is judged by that policy in the place of the metric's.

    Parameters
    ----------
    metric : callable
        Function of ``(y, s)``, ``(s)`` or ``(s1, s2)`` by these names, s2 being the scores of the hypothetical rows,
        and of `qid` and perhaps `sensitive_features` and `query_weight` by keyword.
    greater_is_better : bool, default True
        If False the metric is negated.
    function : callable, optional
        For a metric of ``(s1, s2)``: turns a copy of X into the hypothetical rows. Without it they are the metadata
        `X_hypothetical`.
    **settings
        Further keyword arguments of the metric.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.metrics import QueryScorer, ndcg_score, ndcg_scorer
    >>> X, y, qid = [[0.], [1.], [2.], [3.]], [0, 1, 1, 0], [0, 0, 1, 1]
    >>> ranker = LinearRegression().fit([[0.], [1.]], [0., 1.])
    >>> round(ndcg_scorer(ranker, X, y, qid=qid), 6)
    0.815465
    >>> round(QueryScorer(ndcg_score, k=1)(ranker, X, y, qid=qid), 6)
    0.5
    """

    def __init__(self, metric, *, greater_is_better=True, function=None, **settings):
        parameters = inspect.signature(metric).parameters
        self._inputs = [name for name in ("y", "s", "s1", "s2") if name in parameters]
        taken = ("qid", "sensitive_features", "items", "query_weight")
        self._metadata = [name for name in taken if name in parameters and name not in settings]
        if "s2" in parameters and function is None:
            self._metadata.append("X_hypothetical")
        if function is not None and not callable(function):
            raise TypeError(
                f"function={function!r} is not callable: give a function that turns X into hypothetical rows."
            )
        self._parameters = set(parameters)
        unknown = sorted(set(settings) - set(parameters))
        if unknown:
            raise TypeError(f"{_name(metric)} has no parameter {unknown[0]!r}; it has {sorted(parameters)}.")
        if not self._inputs:
            raise TypeError(
                f"{_name(metric)} takes none of y, s, s1 and s2 (relevances, scores, two rankings' scores); it has "
                f"{sorted(parameters)}."
            )
        self.metric = metric
        self.greater_is_better = greater_is_better
        self.function = function
        self.settings = settings
        self._taken = list(dict.fromkeys([*self._metadata, "sensitive_features"]))
        self._requests = dict.fromkeys(self._taken, True)

    def __call__(self, estimator, X, y=None, *, qid=None, **metadata):
        """The metric of the estimator's scores on X, negated where lower is better.

        Parameters
        ----------
        estimator : object
            Fitted, with `predict` or `decision_function`.
        X : array-like, shape (n_rows, n_features)
        y : array-like, shape (n_rows,), optional
            Relevances, for metrics that take them.
        qid : array-like, shape (n_rows,)
            The query of each row.
        **metadata
            `sensitive_features`, `X_hypothetical` or `query_weight`, for the metrics that take them; `sensitive_features` also
            for an estimator that asks for it.
        """
        given = {"y": y, **self._own(metadata)}
        qid = given.pop("qid", qid)
        if qid is None:
            raise ValueError(f"{self!r} got no qid: {REMEDY}")
        warn_if_queries_are_cut()
        groups = given.get("sensitive_features")
        if "sensitive_features" not in self._metadata:
            given.pop("sensitive_features", None)
        given |= self._rankings(estimator, X, qid, groups, given.pop("X_hypothetical", None))
        positional = [given.pop(name) for name in self._inputs]
        given.pop("y", None)
        if "sensitive_features" in self._metadata:
            given.setdefault("sensitive_features", None)
        value = self.metric(*positional, qid=qid, **{**self._settings_under(given.get("policy")), **given})
        return value if self.greater_is_better else 0.0 - value

    def _rankings(self, estimator, X, qid, groups, X_hypothetical) -> dict:
        """What the metric is told of the estimator's rankings: scores, two rankings' scores, or a policy that needs none."""
        metadata = {"qid": qid, "sensitive_features": groups}
        if "s2" in self._inputs:
            hypothetical = counterparts(X, self._hypothetical(X_hypothetical))
            if _num_samples(hypothetical) != _num_samples(X):
                raise ValueError(
                    f"The hypothetical rows are {_num_samples(hypothetical)}, X has {_num_samples(X)}: each row of X needs its "
                    "counterpart, in the same place."
                )
            return {
                "s1": ranking_scores(estimator, X, **metadata),
                "s2": ranking_scores(estimator, hypothetical, **metadata),
            }
        policy = own_policy(estimator, X, **metadata) if "policy" in self._parameters else None
        if policy is not None:
            return {"s": None, "policy": policy}
        return {"s": ranking_scores(estimator, X, **metadata)}

    def _settings_under(self, policy) -> dict:
        """The metric's settings, without those that an estimator's own policy replaces."""
        replaced = () if policy is None else ("policy", "n_samples", "random_state")
        return {name: value for name, value in self.settings.items() if name not in replaced}

    def _own(self, metadata):
        """What is meant for this scorer.

        A search with several scorers hands its `score` the metadata of all of them unsorted, under the names that the
        caller used. With routing enabled scikit-learn has already refused names that nobody asked for; then aliases are
        read here, and what others asked for is left aside.
        """
        own, routing = {}, get_config()["enable_metadata_routing"]
        aliases = {alias: name for name, alias in self._requests.items() if isinstance(alias, str)}
        for name, value in metadata.items():
            if routing and name in aliases:
                own[aliases[name]] = value
            elif name in self._taken:
                own.setdefault(name, value)
            elif name in self._parameters:
                raise TypeError(
                    f"{name} is a setting of {self!r}, not an argument: make a scorer with it, by make_..._scorer."
                )
            elif not routing:
                raise TypeError(f"{self!r} takes {', '.join(self._taken)}, not {name}.")
        return own

    def _hypothetical(self, X_hypothetical):
        if self.function is not None:
            return self.function
        if X_hypothetical is None:
            raise ValueError(
                f"{self!r} got no X_hypothetical: pass X_hypothetical=, the hypothetical counterpart of each row of X "
                "(in a search to its fit, with sklearn.set_config(enable_metadata_routing=True)), or make the scorer "
                "from a function X -> X' with make_kendall_tau_scorer."
            )
        return X_hypothetical

    def set_score_request(self, **requests):
        """A copy of this scorer with other metadata requests; the scorer itself is left as it is.

        Parameters
        ----------
        **requests
            True, False, None or, as a string, the name under which a search gets it: with
            ``set_score_request(sensitive_features="groups")`` the search is called as ``fit(X, y, qid=qid, groups=g)``.
            What is not named stays as it was.
        """
        changed = copy.deepcopy(self)
        for name, alias in requests.items():
            if name not in self._taken:
                raise TypeError(f"{self!r} takes {', '.join(self._taken)}, not {name}.")
            changed._requests[name] = alias
        changed.get_metadata_routing()  # raises if an alias is not valid
        return changed

    def get_metadata_routing(self):
        """What `sklearn.utils.metadata_routing` asks of a consumer: the metadata that this scorer requests."""
        requests = MetadataRequest(owner=self)
        for name, alias in self._requests.items():
            requests.score.add_request(param=name, alias=alias)
        return requests

    def _accept_sample_weight(self):
        return False

    def _routing_repr(self):
        return repr(self)

    def __sklearn_clone__(self):
        return copy.deepcopy(self)

    def __repr__(self):
        arguments = [_name(self.metric)]
        if not self.greater_is_better:
            arguments.append("greater_is_better=False")
        if self.function is not None:
            arguments.append(f"function={_name(self.function)}")
        arguments += [f"{name}={value!r}" for name, value in self.settings.items()]
        changed = [f"{name}={alias!r}" for name, alias in self._requests.items() if alias is not True]
        return f"QueryScorer({', '.join(arguments)})" + (f".set_score_request({', '.join(changed)})" if changed else "")


def _name(function) -> str:
    """Of a function; a partial or another callable object has none."""
    return getattr(function, "__name__", repr(function))


# What a metric takes that belongs to the rows, or to the mean that a search takes.
_NO_SETTINGS = ("y", "s", "qid", "items", "sensitive_features", "query_weight", "reduce")


def _maker(metric, *, greater_is_better=True, note=""):
    """A function that makes scorers of a metric, with the metric's settings as its keyword arguments."""
    settings = [
        parameter.replace(default=0)
        if name == "random_state"
        else parameter.replace(kind=parameter.POSITIONAL_OR_KEYWORD)
        if parameter.default is parameter.empty
        else parameter
        for name, parameter in inspect.signature(metric).parameters.items()
        if name not in _NO_SETTINGS
    ]
    signature = inspect.Signature(settings)

    def make(*positional, **given):
        bound = signature.bind(*positional, **given).arguments
        if "policy" in signature.parameters and isinstance(bound.get("policy", ""), str):
            bound.setdefault("random_state", 0)  # a policy that is an object brings its own
        return QueryScorer(metric, greater_is_better=greater_is_better, **bound)

    make.__name__ = make.__qualname__ = f"make_{metric.__name__.removesuffix('_score')}_scorer"
    make.__signature__ = signature  # type: ignore[attr-defined]
    negated = "" if greater_is_better else ", negated so that greater is better"
    make.__doc__ = f"""A scorer of :func:`{metric.__name__}`{negated}; with its parameters.

    The same random numbers at every call (``random_state=0``), so that the candidates of a search are compared on equal
    terms; a `policy` that is an object has a `random_state` of its own.{note}
    """
    return make


def make_kendall_tau_scorer(function=None):
    """A scorer of :func:`kendall_tau_score` between the rankings of rows and of their hypothetical counterparts.

    Parameters
    ----------
    function : callable, optional
        Turns X into the hypothetical rows X', for example by flipping a sensitive column. It gets X as the estimator
        does (an array or a DataFrame), and returns as many rows. Without it the scorer takes the hypothetical rows as
        metadata: ``search.fit(X, y, qid=qid, X_hypothetical=X_flipped)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.metrics import make_kendall_tau_scorer
    >>> flip = make_kendall_tau_scorer(lambda X: np.column_stack([1 - X[:, 0], X[:, 1]]))
    >>> X = np.array([[0., 1.], [1., 0.], [0., 3.]])
    >>> ignores_column_0 = LinearRegression().fit(X, X[:, 1])
    >>> flip(ignores_column_0, X, qid=[0, 0, 0])
    1.0
    """
    return QueryScorer(kendall_tau_score, function=function)


_SOFT = """

    A search that picks by it under ``policy="plackett_luce"`` may buy the disparity with small scores; under
    ``policy="deterministic"`` it cannot."""

make_ndcg_scorer = _maker(ndcg_score)
make_stochastic_ndcg_scorer = _maker(stochastic_ndcg_score)
make_utility_scorer = _maker(utility_score)
make_group_exposure_disparity_scorer = _maker(group_exposure_disparity, greater_is_better=False, note=_SOFT)
make_group_exposure_difference_scorer = _maker(group_exposure_difference, greater_is_better=False)
make_individual_exposure_disparity_scorer = _maker(individual_exposure_disparity, greater_is_better=False, note=_SOFT)
make_attention_inequity_scorer = _maker(attention_inequity, greater_is_better=False)
make_attention_weighted_rank_fairness_scorer = _maker(attention_weighted_rank_fairness)
make_expected_exposure_loss_scorer = _maker(expected_exposure_loss, greater_is_better=False)
make_group_ndkl_scorer = _maker(group_ndkl, greater_is_better=False)
make_group_skew_scorer = _maker(group_skew, greater_is_better=False)

#: Stochastic NDCG from 100 rankings of each query, always the same ones.
stochastic_ndcg_scorer = make_stochastic_ndcg_scorer()

#: NDCG of the ranking by descending scores.
ndcg_scorer = make_ndcg_scorer()

#: Kendall's tau with the ranking of the metadata `X_hypothetical`.
kendall_tau_scorer = make_kendall_tau_scorer()

#: Minus the group exposure disparity, from 100 rankings of each query.
neg_group_exposure_disparity_scorer = make_group_exposure_disparity_scorer()

#: Minus the group exposure difference of the ranking by descending scores.
neg_group_exposure_difference_scorer = make_group_exposure_difference_scorer()

#: Minus the individual exposure disparity, from 100 rankings of each query.
neg_individual_exposure_disparity_scorer = make_individual_exposure_disparity_scorer()

#: Minus the inequity of attention over the queries as a history; `items` are metadata.
neg_attention_inequity_scorer = make_attention_inequity_scorer()

#: Attention-weighted rank fairness of the ranking by descending scores.
attention_weighted_rank_fairness_scorer = make_attention_weighted_rank_fairness_scorer()

#: Minus the expected exposure loss, from 100 rankings of each query.
neg_expected_exposure_loss_scorer = make_expected_exposure_loss_scorer()

#: Minus the NDKL of the ranking by descending scores.
neg_group_ndkl_scorer = make_group_ndkl_scorer()

#: Minus the largest skew of a group among the first 10 ranks.
neg_group_skew_scorer = make_group_skew_scorer()
