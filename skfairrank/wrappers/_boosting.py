"""SenSTIRBoostingRanker: SenSTIR's objective for gradient-boosted trees."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils import check_array
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from skfairrank._candidates import is_same, warn_of_no_effect
from skfairrank._checks import check_relevance, names_queries, stores_parameters, warn_caller
from skfairrank._random import as_generator
from skfairrank.adversaries._given import ListAdversary
from skfairrank.fair_metrics._distances import distances_of_rows
from skfairrank.fair_metrics._subspace import fit_metric
from skfairrank.hypotheticals import Hypotheticals, check_hypotheticals
from skfairrank.policies import GRADIENTS
from skfairrank.rankers._fitting import warn_if_nothing_can_be_learned
from skfairrank.training import Batch
from skfairrank.utilities import UTILITIES, make_utility, warn_of_exponents
from skfairrank.wrappers._base import Wrapper, library_of
from skfairrank.wrappers._objective import Blocks, FairObjective, SortedUtility, make_gradient_of_trees
from skfairrank.wrappers._query_ranker import query_argument

_REMEDIES = {
    "sample_weight": "rows of a query have no weights of their own; whole queries have, query_weight",
    "eval_metric": "evaluation sets are judged by `utility`, and by metrics that the model's own parameters name",
    **dict.fromkeys(("eval_group", "eval_X", "eval_y"), "give eval_set=[(X, y)] and eval_qid=[qid]"),
}


# A last tenth of the rounds that brings more than so much of what training gains has not come to an end: on four tasks it was .03
# and less where four times as many trees hardly changed tau and NDCG, and .05 and more where they did. Less than `FEWEST` rounds
# are a trial, which nobody takes for trained.
LARGE_SHARE, FEWEST = 0.04, 20


class SenSTIRBoostingRanker(Wrapper):
    r"""Individually fair boosting: trees of LightGBM or XGBoost grown on SenSTIR's objective.

    Maximises, by functional gradient descent, :math:`\mathrm{mean}\, U(q) - \rho R` with U the expected utility (NDCG) of the
    Plackett-Luce policy of trees, and R the largest mean :math:`1/2\, \|h(q) - h(q')\|^2` over hypothetical queries q'
    whose mean distance :math:`d_Q(q, q')` from q is at most `epsilon` (Bower et al. 2021; boosting as in Vargo et al. 2021).
    Scores of trees have no gradient in the features along which an adversary could ascend. So each training row brings a list of
    hypothetical rows, and in each round the adversary picks for every row the one from which its score differs most.

    Parameters
    ----------
    estimator : LGBMRanker or XGBRanker
        The model, with its own parameters: number of trees, leaves, learning rate, subsampling, early stopping and so on.
    metric : None, fair metric, FrozenEstimator or array-like of shape (K, n_features), default=None
        The fair metric d_X on items, as for `SenSTIRRanker`; it needs an X of numbers. With a metric a hypothetical row costs its
        d_X, of which `epsilon` bounds the mean. With None hypothetical rows cost nothing: whoever names them says that they are
        the same item. Steps and neighbours are then taken in the metric that is learned from the `sensitive_features` of `fit`.
    hypotheticals : None, callable, list or dict of callable, or Hypotheticals, default=None
        Where hypothetical rows come from: functions that turn X into as many rows, such as one that exchanges the columns of sex;
        or `skfairrank.hypotheticals.Hypotheticals`. None: the `X_hypothetical` of `fit`; if there is none, steps of plus and
        minus a half and a whole `subspace_radius` along the metric's directions and, where the metric is None too, of the groups'
        gap in each single feature.
    rho : float, default=0.01
        Strength of the regulariser. 0 grows trees on the utility alone; hypothetical rows are then not looked at.
    epsilon : float, default=0.01
        Transport budget: bound on the mean d_Q, in squared feature units. Without a `metric` nothing is charged to it.
    utility : "ndcg" or Utility, default="ndcg"
        What is maximised: "ndcg", or an object such as ``skfairrank.utilities.NDCG(k=10)``.
    gradient : {"plrank", "reinforce", "exact", "lambdarank"} or GradientEstimator, default="plrank"
        Estimator of dU/dh, as for `PlackettLuceRanker`; "exact" is for queries of up to
        `skfairrank.plackett_luce.EXACT_LIMIT` items. "lambdarank": LambdaMART's gradients in its place, so that ``rho=0`` with
        LightGBM is the model of `LGBMRanker` (in queries of up to 30 items; beyond, its ideal DCG counts 30). They are several
        times larger, and ask for a larger `rho`.
    n_samples : int, default=32
        Sampled rankings per query and round, at least 2.
    subspace_radius : float, default=1.0
        How far steps along directions lead, in units of the directions, where `hypotheticals` is None.
    random_state : None, int, RandomState or Generator, default=None
        For the sampled rankings. An int makes `fit` repeatable; the model has a random state of its own.

    Attributes
    ----------
    estimator_ : LGBMRanker or XGBRanker
        Fitted, with the parameters of `estimator`: it predicts, saves and explains like any other.
    hypotheticals_ : Hypotheticals or None
        As fitted; None with ``rho=0``.
    metric_ : fair metric or None
        As fitted; None where it is neither named nor needed.
    lambda_ : float
        Multiplier of the transport budget in the last round (rho times that of the paper's dual); 0 where the budget does not
        bind.
    history_ : dict of ndarray, each with one entry per round
        "utility" (mean of the round's sampled rankings), "regularizer" (mean 1/2 ||h(q) - h(q')||^2, without rho),
        "query_distance" (mean d_Q(q, q')) and "lambda", all before the round's tree is added.
    n_queries_, n_features_in_, feature_names_in_
        As for `QueryRanker`.

    Notes
    -----
    Parameters that act on the library's own objective or on gradients are refused by name: other objectives, goss,
    ``boosting_type="dart"`` and "rf", ``bagging_by_query``, linear trees; and so is CatBoost, to whose ranker rows without
    gradient can't be added. With m hypothetical rows for each row the model has (1 + m) times the rows, which is what `fit`
    costs. LightGBM's least numbers of rows in a leaf (`min_child_samples`) are counted in training rows. Both libraries subsample
    rows without regard to which belong together.

    References
    ----------
    Bower, Eftekhari, Yurochkin and Sun (2021). Individually Fair Ranking. ICLR.

    Vargo, Zhang, Yurochkin and Sun (2021). Individually Fair Gradient Boosting. ICLR.

    Examples
    --------
    >>> from lightgbm import LGBMRanker
    >>> from skfairrank import SenSTIRBoostingRanker
    >>> from skfairrank.datasets import make_biased_ranking
    >>> task = make_biased_ranking(random_state=0)
    >>> def mirrored(X):
    ...     return X * [1.0, -1.0]
    >>> model = LGBMRanker(n_estimators=50, num_leaves=7, n_jobs=1, verbose=-1)
    >>> ranker = SenSTIRBoostingRanker(
    ...     model, hypotheticals=mirrored, rho=0.03, random_state=0
    ... )
    >>> ranker = ranker.fit(task.data, task.target, qid=task.qid)
    >>> bool(ranker.history_["regularizer"][-1] < 0.1)  # of scores that lie about 1 apart
    True
    """

    __metadata_request__fit = {"query_weight": True}

    _parameter_constraints: dict = {
        **Wrapper._parameter_constraints,
        "metric": [HasMethods("fit"), "array-like", None],
        "hypotheticals": [callable, list, tuple, dict, HasMethods("candidates"), None],
        "rho": [Interval(Real, 0, None, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "utility": [StrOptions(set(UTILITIES)), HasMethods("tables")],
        "gradient": [StrOptions({*GRADIENTS, "lambdarank"}), HasMethods(["estimate", "check"])],
        "n_samples": [Interval(Integral, 2, None, closed="left")],
        "subspace_radius": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state", np.random.Generator],
    }

    @stores_parameters
    def __init__(
        self,
        estimator,
        *,
        metric=None,
        hypotheticals=None,
        rho=0.01,
        epsilon=0.01,
        utility="ndcg",
        gradient="plrank",
        n_samples=32,
        subspace_radius=1.0,
        random_state=None,
    ): ...

    @names_queries
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X,
        y,
        *,
        qid=None,
        sensitive_features=None,
        query_weight=None,
        X_hypothetical=None,
        eval_set=None,
        eval_qid=None,
        **fit_params,
    ):
        """Grow the trees.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, shape (n_rows, n_features)
            Missing values and categories of a DataFrame are up to the model.
        y : array-like, shape (n_rows,)
            Relevance of each row, >= 0.
        qid : array-like, shape (n_rows,), optional
            The query of each row: ints or strings, in any order. None: all rows are one query, with a warning.
        sensitive_features : array-like of n_rows rows, optional
            For the metric, where it is learned and needed.
        query_weight : array-like of shape (n_rows,), or mapping from query ids to numbers, optional
            Weight of each query, as for `PlackettLuceRanker`.
        X_hypothetical : table like X, list or dict of such tables, or ndarray of shape (n_rows, n_sets, n_features), optional
            Hypothetical rows that one has, in the order of the rows of X; beside those of `hypotheticals`.
        eval_set, eval_qid : list of (X, y), and list of query ids, optional
            Evaluation sets, rows in any order, for the model's early stopping. They are judged by the utility of the list sorted
            by score, named such as "ndcg" or "ndcg@10", and by the model's own metrics only where its parameters name some.
        **fit_params
            Further arguments of the model's `fit`: of LightGBM `callbacks`, `categorical_feature`, `feature_name` and
            `eval_names`; of XGBoost `verbose`.

        Returns
        -------
        self : SenSTIRBoostingRanker

        Raises
        ------
        TypeError
            If `estimator` is no ranker of LightGBM or XGBoost, or an argument can't be passed on.
        ValueError
            If the model's parameters ask for what can't be had here, hypothetical rows do not fit X, nothing is sensitive while
            rho > 0, or y has negative values.
        """
        library = self._library(fit_params)
        X, y, queries = self._check_training_data(X, y, qid)
        y, model = check_relevance(y), clone(self.estimator)
        fit_params |= {} if eval_set is None else {"eval_set": eval_set, "eval_qid": eval_qid}
        fit_params = self._evaluation(model, query_argument(model), fit_params)
        weight = queries.weights(query_weight)
        weight = np.ones(queries.n_queries) if weight is None else weight / weight.mean()
        sets = self._hypothetical_sets(X, y, sensitive_features, X_hypothetical, library)
        adversary = None
        if self.rho > 0:
            distances = self._distances(X, sets, queries)
            rho, epsilon = float(self.rho), float(self.epsilon)
            adversary = ListAdversary(distances, queries.sizes, weight, rho=rho, epsilon=epsilon)
        objective = self._objective(y, queries, weight, adversary)
        metric = SortedUtility(make_utility(self.utility))
        arguments = Blocks(X, queries, sets), queries.group(y), queries.sizes, objective, metric, fit_params
        self.estimator_ = library.boost(model, *arguments)
        self.n_queries_ = queries.n_queries
        self.history_ = {name: np.array(values) for name, values in objective.history.items()}
        self.lambda_ = 0.0 if adversary is None else float(adversary.multiplier)
        if objective.is_braked and len(self.history_["utility"]) >= FEWEST:
            self._warn_of_too_few_trees(len(self.history_["utility"]))
        return self

    def _library(self, fit_params):
        """The record of the estimator's library, which can boost with these parameters and arguments."""
        library, owner = library_of(self.estimator), type(self).__name__
        is_ranker = any(kind.__name__ == library.ranker for kind in type(self.estimator).__mro__)
        if not library.fit_arguments or not is_ranker:
            raise TypeError(
                f"estimator is a {type(self.estimator).__name__}, and {owner} grows trees of LightGBM or XGBoost: give "
                "LGBMRanker(...) or XGBRanker(...). (CatBoost's ranker takes no hypothetical rows without gradient; "
                "SenSTIRRanker is for linear and smooth scores.)"
            )
        library.check_parameters(self.estimator, owner)
        for name in fit_params:
            if name not in library.fit_arguments:
                passed = f"it passes {', '.join(library.fit_arguments)} on to {library.name}"
                raise TypeError(f"fit of {owner} takes no {name}: {_REMEDIES.get(name, passed)}.")
        return library

    def _objective(self, y, queries, weight, adversary) -> FairObjective:
        """What the trees are grown on."""
        utility = make_utility(self.utility)
        tables = utility.tables(queries.group(y), queries.offsets)
        warn_of_exponents(y, getattr(utility, "gain", None))
        gradient = make_gradient_of_trees(self.gradient, int(self.n_samples))
        gradient.check(queries, tables)
        warn_if_nothing_can_be_learned(queries, tables.gain)
        batch = Batch(
            X=np.empty((0, 0)),
            rows=queries.order,
            offsets=queries.offsets,
            queries=np.arange(queries.n_queries),
            gain=tables.gain,
            continuation=np.empty(0) if tables.continuation is None else tables.continuation,
            weight=weight,
            key=np.uint64(0),
            utility=tables.utility,
        )
        learning_rate = library_of(self.estimator).learning_rate(self.estimator)
        return FairObjective(
            batch, tables.discount, gradient, adversary, learning_rate, as_generator(self.random_state)
        )

    def _warn_of_too_few_trees(self, n_trees: int) -> None:
        """Warn where the last tenth of the rounds still brought a good part of what training has gained."""
        tenth = -(-n_trees // 10)
        gained = self.history_["utility"] - self.rho * self.history_["regularizer"]
        last, before = gained[-tenth:].mean(), gained[-2 * tenth : -tenth or None].mean()
        if last - before > LARGE_SHARE * (last - gained[0]):
            warn_caller(
                f"{n_trees} trees are too few for rho={self.rho:g}, whose pull holds all scores back: utility less rho "
                f"times the regulariser rose by {last - gained[0]:.3f}, by {last - before:.3f} of it in the last {tenth} rounds. "
                "Grow more trees (two to four times as many), or take a smaller rho."
            )

    def _hypothetical_sets(self, X, y, sensitive_features, X_hypothetical, library):
        """Sets of hypothetical rows by name, made whenever they are iterated over."""
        self.hypotheticals_ = self.metric_ = None
        if self.rho == 0:
            return ()
        hypotheticals = self._hypotheticals(sensitive_features, X_hypothetical)
        if self.metric is not None or hypotheticals.needs_metric:
            library.refuse_missing(X, self.estimator)
        if self.metric is not None:
            uses_directions = bool(hypotheticals.directions or hypotheticals.n_neighbors)
            self.metric_ = fit_metric(self.metric, X, sensitive_features, y, uses_directions=uses_directions)
        hypotheticals.fit(X, y, sensitive_features=sensitive_features, metric=self.metric_)
        if self.metric is None:
            self.metric_ = hypotheticals.metric_
        self.hypotheticals_ = hypotheticals
        return hypotheticals.candidates(X, X_hypothetical)

    def _distances(self, X, sets, queries) -> np.ndarray | None:
        """d_X between each row and each of its hypothetical rows, query by query; None where they cost nothing."""
        distances = []
        for name, rows in sets:
            if is_same(X, rows):
                warn_of_no_effect(name)
            if self.metric is not None:
                own = check_array(X, dtype=[np.float64, np.float32], input_name="X")
                others = check_array(rows, dtype=[np.float64, np.float32], input_name=name)
                distances.append(queries.group(distances_of_rows(own, others, self.metric_)))
            del rows  # before the next set is made
        return np.array(distances) if distances else None

    def _hypotheticals(self, sensitive_features, X_hypothetical) -> Hypotheticals:
        """An unfitted copy of what was given, or the default."""
        if self.hypotheticals is not None or X_hypothetical is not None:
            return clone(check_hypotheticals(self.hypotheticals), safe=False)
        if self.metric is None and sensitive_features is None:
            raise ValueError(
                "Nothing is treated as sensitive, so there are no hypothetical rows: give hypotheticals (functions X -> X'), "
                "pass X_hypothetical or sensitive_features to fit, or give a metric with directions; or set rho=0."
            )
        return Hypotheticals(directions=True, gaps=self.metric is None, subspace_radius=self.subspace_radius)
