"""Metrics as scikit-learn scorers that receive `qid` and what else they need by metadata routing."""

from __future__ import annotations

import copy
import inspect

from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import _num_samples

from skfairrank._candidates import counterparts
from skfairrank._queries import REMEDY
from skfairrank.metrics._exposure import (
    attention_inequity,
    expected_exposure_loss,
    group_exposure_difference,
    group_exposure_disparity,
    individual_exposure_disparity,
)
from skfairrank.metrics._pairwise import group_pairwise_accuracy_difference
from skfairrank.metrics._predictions import own_policy, ranking_scores
from skfairrank.metrics._quality import kendall_tau_score, ndcg_score, stochastic_ndcg_score
from skfairrank.metrics._shares import group_ndkl, group_skew

_METADATA = ("qid", "sensitive_features", "items", "query_weight")
_OF_A_POLICY = ("policy", "n_samples", "random_state")
_LOWER_IS_BETTER = (
    attention_inequity,
    expected_exposure_loss,
    group_exposure_difference,
    group_exposure_disparity,
    group_ndkl,
    group_pairwise_accuracy_difference,
    group_skew,
    individual_exposure_disparity,
)


class RankingScorer:
    """What `make_ranking_scorer` makes: ``scorer(estimator, X, y, *, qid, ...)``."""

    def __init__(self, metric, greater_is_better, hypotheticals, settings):
        parameters = inspect.signature(metric).parameters
        self.metric, self.greater_is_better = metric, greater_is_better
        self.hypotheticals, self.settings = hypotheticals, settings
        self._parameters = tuple(parameters)
        taken = [name for name in _METADATA if name in parameters and name not in settings]
        if "s2" in parameters and hypotheticals is None:
            taken.append("X_hypothetical")
        # An estimator that asks for the groups when it predicts, as a re-ranker does, gets them whatever the metric.
        self._requests = dict.fromkeys([*taken, "sensitive_features"], True)

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
        given = self._own({"qid": qid, **metadata})
        if given.get("qid") is None:
            raise ValueError(f"{self!r} got no qid: {REMEDY}")
        known = {"qid": given["qid"], "sensitive_features": given.get("sensitive_features")}
        settings = self.settings
        if "s1" in self._parameters:
            given["s1"] = ranking_scores(estimator, X, **known)
            given["s2"] = ranking_scores(estimator, self._hypothetical(X, given.pop("X_hypothetical", None)), **known)
        else:
            policy = own_policy(estimator, X, **known)
            if policy is not None and "policy" in self._parameters:
                settings = {name: value for name, value in settings.items() if name not in _OF_A_POLICY}
                given |= {"policy": policy, "s": None}
            else:
                given["s"] = ranking_scores(estimator, X, **known)
        if "y" in self._parameters:
            given["y"] = y
        if "sensitive_features" in self._parameters:
            given.setdefault("sensitive_features", None)  # the metric says what is missing
        value = self.metric(**{name: v for name, v in given.items() if name in self._parameters} | settings)
        return value if self.greater_is_better else 0.0 - value

    def _own(self, metadata):
        """What is meant for this scorer, under the metric's names.

        A search with several scorers hands its `score` the metadata of all of them, under the caller's names: then scikit-learn
        has checked the names before, and aliases are read here.
        """
        routing, own = get_config()["enable_metadata_routing"], {}
        for name, alias in self._requests.items():
            names = [alias, name] if routing and isinstance(alias, str) else [name]
            own[name] = next((metadata[n] for n in names if metadata.get(n) is not None), None)
        unknown = [n for n in metadata if n not in own and (not routing or n in self._parameters)]
        if unknown:
            raise TypeError(
                f"{self!r} takes {', '.join(self._requests)}, not {unknown[0]}: settings of the metric are given to "
                "make_ranking_scorer."
            )
        return {name: value for name, value in own.items() if value is not None}

    def _hypothetical(self, X, X_hypothetical):
        if self.hypotheticals is None and X_hypothetical is None:
            raise ValueError(
                f"{self!r} got no X_hypothetical: pass X_hypothetical=, the hypothetical counterpart of each row of X "
                "(in a search to its fit, with sklearn.set_config(enable_metadata_routing=True)), or make the scorer "
                "from a function X -> X' with make_kendall_tau_scorer."
            )
        rows = counterparts(X, X_hypothetical if self.hypotheticals is None else self.hypotheticals)
        if _num_samples(rows) != _num_samples(X):
            raise ValueError(f"The hypothetical rows are {_num_samples(rows)}, and X has {_num_samples(X)} rows.")
        return rows

    def set_score_request(self, **requests):
        """A copy of this scorer with other metadata requests; the scorer itself is left as it is.

        Parameters
        ----------
        **requests
            True, False, None or, as a string, the name under which a search gets it: with
            ``set_score_request(sensitive_features="groups")`` the search is called as ``fit(X, y, qid=qid, groups=g)``.
            What is not named stays as it was.
        """
        unknown = [name for name in requests if name not in self._requests]
        if unknown:
            raise TypeError(f"{self!r} takes {', '.join(self._requests)}, not {unknown[0]}.")
        changed = copy.deepcopy(self)
        changed._requests.update(requests)
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
        given = {"greater_is_better": self.greater_is_better, "hypotheticals": self.hypotheticals, **self.settings}
        if self.greater_is_better is (self.metric not in _LOWER_IS_BETTER):
            del given["greater_is_better"]
        shown = {name: getattr(v, "__name__", repr(v)) for name, v in given.items() if v is not None}
        arguments = [getattr(self.metric, "__name__", repr(self.metric)), *(f"{n}={v}" for n, v in shown.items())]
        changed = [f"{name}={alias!r}" for name, alias in self._requests.items() if alias is not True]
        requests = f".set_score_request({', '.join(changed)})" if changed else ""
        return f"make_ranking_scorer({', '.join(arguments)}){requests}"


def make_ranking_scorer(metric, *, greater_is_better=None, hypotheticals=None, **settings):
    """A scikit-learn scorer of a metric with queries, for `cross_validate`, searches and ``scorer(estimator, X, y, qid=qid)``.

    The estimator's scores are what its `predict` returns; a classifier's are its `decision_function`. Pipelines and fitted
    searches will do; steps that request `qid` in `transform` get it. With metadata routing enabled the scorer requests `qid` and
    whatever else the metric takes, so that ``search.fit(X, y, qid=qid, sensitive_features=g)`` is all. Without `qid` it raises:
    rows of several queries are never read as one. An estimator that draws its rankings by a rule of its own, and has a method
    `policy`, is judged by that policy.

    Parameters
    ----------
    metric : callable
        A metric of `skfairrank.metrics`, or a function of ``(y, s)``, ``(s)`` or ``(s1, s2)`` by these names, s2 being the scores
        of hypothetical rows, and of `qid` and perhaps `sensitive_features`, `items` and `query_weight` by keyword.
    greater_is_better : bool, optional
        If False the metric is negated. None: False for this package's disparities and losses, True for everything else.
    hypotheticals : callable, optional
        For a metric of ``(s1, s2)``: turns a copy of X into the hypothetical rows. None: they are the metadata `X_hypothetical`.
    **settings
        Further keyword arguments of the metric. Without `random_state` it is 0, so that the candidates of a search are compared
        by the same rankings.

    Returns
    -------
    scorer : callable
        With ``set_score_request(sensitive_features="sex")`` for other names of the metadata.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.metrics import make_ranking_scorer, ndcg_score
    >>> X, y, qid = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0], [0, 0, 1, 1]
    >>> ranker = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> round(make_ranking_scorer(ndcg_score, k=1)(ranker, X, y, qid=qid), 6)
    0.5
    """
    parameters = inspect.signature(metric).parameters
    unknown = sorted(set(settings) - set(parameters))
    shown = f"{getattr(metric, '__name__', repr(metric))}; it has {sorted(parameters)}"
    if unknown:
        raise TypeError(f"{unknown[0]!r} is no parameter of {shown}.")
    if not {"y", "s", "s1"} & set(parameters):
        raise TypeError(f"None of y, s and s1 (relevances, scores, two rankings' scores) is a parameter of {shown}.")
    needed = [
        n for n, p in parameters.items() if p.default is p.empty and p.kind == p.KEYWORD_ONLY and n not in _METADATA
    ]
    if missing := [name for name in needed if name not in settings]:
        raise TypeError(f"{missing[0]!r} is missing: give it as a setting of {shown}.")
    if hypotheticals is not None and not callable(hypotheticals):
        raise TypeError(f"hypotheticals={hypotheticals!r}: give a function that turns X into hypothetical rows.")
    if "random_state" in parameters and isinstance(settings.get("policy", ""), str):
        settings.setdefault("random_state", 0)  # a policy that is an object brings its own
    better = metric not in _LOWER_IS_BETTER if greater_is_better is None else bool(greater_is_better)
    return RankingScorer(metric, better, hypotheticals, settings)


def make_kendall_tau_scorer(hypotheticals=None):
    """A scorer of :func:`kendall_tau_score` between the rankings of rows and of their hypothetical counterparts.

    Parameters
    ----------
    hypotheticals : callable, optional
        Turns X into the hypothetical rows X', for example by flipping a sensitive column. It gets X as the estimator
        does (an array or a DataFrame), and returns as many rows. Without it the scorer takes the hypothetical rows as
        metadata: ``search.fit(X, y, qid=qid, X_hypothetical=X_flipped)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skfairrank.metrics import make_kendall_tau_scorer
    >>> flip = make_kendall_tau_scorer(lambda X: np.column_stack([1 - X[:, 0], X[:, 1]]))
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 3.0]])
    >>> ignores_column_0 = LinearRegression().fit(X, X[:, 1])
    >>> flip(ignores_column_0, X, qid=[0, 0, 0])
    1.0
    """
    return make_ranking_scorer(kendall_tau_score, hypotheticals=hypotheticals)


#: NDCG of the ranking by descending scores.
ndcg_scorer = make_ranking_scorer(ndcg_score)

#: Stochastic NDCG from 100 rankings of each query, always the same ones.
stochastic_ndcg_scorer = make_ranking_scorer(stochastic_ndcg_score)

#: Kendall's tau with the ranking of the metadata `X_hypothetical`.
kendall_tau_scorer = make_kendall_tau_scorer()

#: Minus the group exposure disparity, from 100 rankings of each query.
neg_group_exposure_disparity_scorer = make_ranking_scorer(group_exposure_disparity)

#: Minus the group exposure difference of the ranking by descending scores.
neg_group_exposure_difference_scorer = make_ranking_scorer(group_exposure_difference)

#: Minus the difference of the groups' pairwise accuracy.
neg_group_pairwise_accuracy_difference_scorer = make_ranking_scorer(group_pairwise_accuracy_difference)
