"""Certificates: statistics by loops over pairs, bounds by enumeration and simulation, attacks by random search."""

import pickle
import warnings
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from instruments import Weights
from lightgbm import LGBMRanker
from scipy.optimize import brentq
from scipy.stats import beta
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skfairrank import (
    QueryRanker,
    SensitiveSubspaceMetric,
    SenSTIRRanker,
)
from skfairrank._queries import Queries
from skfairrank.adversaries import ExactBox, ExactBudget, ExactGaps
from skfairrank.hypotheticals import Hypotheticals
from skfairrank.inspection import (
    CertificateDisplay,
    fairness_certificate,
    invariance_regularizer,
    upper_confidence_bound,
)
from skfairrank.inspection._order_changes import STATISTICS, of_intervals
from skfairrank.postprocessing import DetConstSortRanker
from skfairrank.scores import MLPScore

pytestmark = pytest.mark.once

# The bound


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_bound_of_zeros_and_ones_covers_exactly(confidence):
    """The share of all 2^n samples in which it fails, at every p; and it is at most the binomial bound of half of the risk."""
    risk, p = 1 - confidence, np.linspace(0.01, 0.99, 33)
    for n in (1, 2, 9):
        missed = 0.0
        for x in product([0.0, 1.0], repeat=n):
            k, got = int(sum(x)), upper_confidence_bound(x, confidence)
            assert got <= (beta.ppf(1 - risk / 2, k + 1, n - k) if k < n else 1.0) + 1e-9
            missed += p**k * (1 - p) ** (n - k) * (got < p)
        assert (missed <= risk + 1e-9).all()


def hedged_capital_bound(x, weight, risk=0.05):
    """Waudby-Smith and Ramdas (2024), one-sided: bets sqrt(2 log(1 / risk) / (n variance)), of at most half of what there is.

    With weights the stakes are proportional to them, and the variance is that of the values, weighted as they vary the sum.
    """
    w = weight / np.sqrt(np.mean(weight**2))
    n = np.cumsum(w**2)
    mean = (0.5 + np.cumsum(w**2 * x)) / (1 + n)
    variance = (0.25 + np.cumsum(w**2 * (x - mean) ** 2)) / (1 + n)
    bets = np.sqrt(2 * np.log(1 / risk) / (len(x) * np.r_[0.25, variance[:-1]]))

    def lacks(m):
        stakes = np.minimum(bets, 0.5 / (1 - m) / w.max()) * w
        return np.sum(np.log1p(stakes * (m - x))) - np.log(1 / risk)

    return brentq(lacks, x.min(), 1 - 1e-9)


@pytest.mark.parametrize("n", [50, 200, 1000])
@pytest.mark.parametrize("name", ["uniform", "beta", "nearly normal", "clipped Pareto"])
def test_excess_beside_the_hedged_capital_bound(name, n):
    """On the mean below it; of single draws, where the order of the values counts, nine of ten at most a tenth above it."""
    ratios = []
    for seed in range(20 if n < 1000 else 6):
        rng = np.random.default_rng(seed)
        x = {
            "uniform": rng.random(n),
            "beta": rng.beta(0.5, 2.0, n),
            "nearly normal": rng.beta(5.0, 5.0, n),
            "clipped Pareto": np.minimum(0.05 * rng.random(n) ** (-1 / 0.8), 1.0),
        }[name]
        of_draw = []
        for weight in (np.ones(n), rng.uniform(1, 3, n), rng.exponential(size=n)):
            mean = np.average(x, weights=weight)
            excess = upper_confidence_bound(x, weight=weight) - mean
            of_draw.append(excess / (hedged_capital_bound(x, weight) - mean))
        ratios.append(of_draw)
    assert (np.mean(ratios, axis=0) < [0.96, 1.01, 1.01]).all() and np.quantile(ratios, 0.9) < 1.1


def hoeffding(x, w):
    return min(1.0, w @ x / w.sum() + np.sqrt(np.log(20) / 2 * np.sum(w**2)) / w.sum())


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.2, 0.5, 0.95])
@pytest.mark.parametrize("n", [10, 200])
def test_weighted_bound_is_never_wider_than_hoeffdings(n, rate):
    """One weight of 50 beside others of 1, weights that differ by chance; and bets win where the mean is small."""
    rng = np.random.default_rng(n)
    for weight in (np.r_[50.0, np.ones(n - 1)], rng.exponential(size=n), rng.uniform(1, 2, n)):
        for x in ((rng.random(n) < rate).astype(float), np.full(n, rate)):
            assert upper_confidence_bound(x, weight=weight) <= hoeffding(x, weight) + 1e-12
    if n == 200 and rate == 0.05:  # values that vary little: the bets, with nearly all of the risk
        assert upper_confidence_bound(np.full(n, rate), weight=weight) - rate < 0.35 * (hoeffding(x, weight) - rate)


def draws(name, rng, shape):
    """Values in [0, 1], and their mean."""
    if name == "rarely one":  # what a bound that trusts the spread of the sample misses
        return (rng.random(shape) < 0.03).astype(float), 0.03
    if name == "rare and small":
        return 0.05 + 0.4 * (rng.random(shape) < 0.04), 0.066
    if name == "nearly constant":
        return 0.1 + 0.9 * (rng.random(shape) < 0.02), 0.118
    if name == "uniform":
        return rng.random(shape), 0.5
    if name == "shares of ten pairs":
        return rng.binomial(10, 0.2, shape) / 10, 0.2
    return rng.beta(0.3, 3.0, shape), 0.3 / 3.3


@pytest.mark.parametrize("n", [8, 60])
@pytest.mark.parametrize(
    "name", ["rarely one", "rare and small", "nearly constant", "uniform", "shares of ten pairs", "beta"]
)
def test_bound_covers_whatever_the_distribution(name, n):
    """200 samples at 80 %, so that a bound that is a little too small is seen: at most 20 % and three standard errors fail."""
    values, mean = draws(name, np.random.default_rng(5), (200, n))
    missed = sum(upper_confidence_bound(sample, 0.8) < mean for sample in values)
    assert missed <= 200 * 0.2 + 3 * np.sqrt(200 * 0.2 * 0.8)


@pytest.mark.parametrize("scale", [0.02, 0.2])
def test_weighted_bound_covers_the_weighted_mean(scale):
    """Of expectations that differ from value to value, and go with the weights."""
    rng = np.random.default_rng(3)
    weight = rng.exponential(size=30)
    means = np.clip(scale * (0.5 + weight), 0, 1)
    target = np.average(means, weights=weight)
    missed = sum(
        upper_confidence_bound((rng.random(30) < means).astype(float), 0.8, weight=weight) < target for _ in range(300)
    )
    assert missed <= 300 * 0.2 + 3 * np.sqrt(300 * 0.2 * 0.8)


def test_bound_depends_neither_on_dtype_nor_on_equal_weights_nor_on_clusters_of_one():
    rng = np.random.default_rng(0)
    x = np.round(rng.beta(0.5, 5, 300), 2)
    bound = upper_confidence_bound(x)
    assert bound == upper_confidence_bound(list(x), weight=[2] * 300)
    w = rng.exponential(size=300)
    for one_each in (np.arange(300), [f"firm {k}" for k in rng.permutation(300)]):
        assert bound == upper_confidence_bound(x, clusters=one_each)
        assert upper_confidence_bound(x, weight=w, clusters=one_each) == upper_confidence_bound(x, weight=w)
    assert bound == upper_confidence_bound(np.r_[x, 1.0], weight=np.r_[np.ones(300), 0.0])


def test_bound_of_constants_and_of_many_values():
    assert upper_confidence_bound([1.0]) == 1.0 and upper_confidence_bound([0.0]) == pytest.approx(0.975)
    assert 0.5 < upper_confidence_bound(np.full(3000, 0.5)) < 0.5 + 3 / np.sqrt(3000)  # rounded by Fourier transforms


@pytest.mark.parametrize(
    ("values", "kw", "match"),
    [
        ([0.5, 1.5], {}, "0.5 to 1.5"),
        ([np.nan, 0.1], {}, "NaN"),
        ([], {}, "values"),
        ([0.1], {"confidence": 95}, "confidence=95"),
        ([0.1, 0.2], {"weight": [1.0]}, "one number for each"),
        ([0.1, 0.2], {"weight": [0.0, 0.0]}, "0 for all"),
        ([0.1, 0.2], {"clusters": ["a"]}, "cluster of each"),
        ([0.1, 0.2], {"clusters": ["a", None]}, "cluster of each"),
    ],
)
def test_bound_says_what_it_needs(values, kw, match):
    with pytest.raises(ValueError, match=match):
        upper_confidence_bound(values, **kw)


# The statistics


def by_pairs(statistic, s, other):
    """One query, by its definition."""
    n = len(s)
    if statistic == "discordance":
        pairs = [abs(np.sign(s[i] - s[j]) - np.sign(other[i] - other[j])) / 2 for i, j in combinations(range(n), 2)]
        return np.mean(pairs) if pairs else 0.0
    if statistic == "score_change":
        return 0.5 * sum((a - b) ** 2 for a, b in zip(s, other, strict=True))
    first, second = (sorted(range(n), key=lambda i: -scores[i]) for scores in (s, other))
    if statistic == "top_changed":
        return float(first[0] != second[0])
    return sum(abs(first.index(i) - second.index(i)) for i in range(n)) / max(n**2 // 2, 1)


@pytest.fixture
def scores():
    rng = np.random.default_rng(2)
    sizes = np.r_[1, 2, rng.integers(1, 9, 30), 70]
    qid = rng.permutation(np.repeat([f"q{k}" for k in range(len(sizes))], sizes))
    return qid, *rng.integers(0, 4, (2, len(qid))).astype(float)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_statistics_are_those_of_loops_over_pairs(scores, statistic):
    qid, s, other = scores
    queries = Queries.from_qid(qid, len(s))
    got = STATISTICS[statistic](queries.group(s), queries.group(other), queries)
    expected = [by_pairs(statistic, s[qid == q], other[qid == q]) for q in np.unique(qid)]
    np.testing.assert_allclose(got, expected, atol=1e-12)
    np.testing.assert_array_equal(STATISTICS[statistic](queries.group(s), queries.group(s), queries), 0.0)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_no_query_within_intervals_changes_more_than_is_said(statistic):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 6, 40)
    queries = Queries.from_qid(np.repeat(np.arange(40), sizes), int(sizes.sum()))
    s = np.round(rng.normal(size=queries.n_rows), 1)
    low, high = s - rng.exponential(0.3, len(s)), s + rng.exponential(0.3, len(s))
    low[::7], high[::7] = s[::7], s[::7]
    most, seen = of_intervals(statistic, s, low, high, queries), np.zeros(40)
    for _ in range(300):
        share = np.round(rng.beta(0.3, 0.3, len(s)), 1)
        seen = np.maximum(seen, STATISTICS[statistic](s, low + share * (high - low), queries))
    assert (seen <= most + 1e-12).all()
    if statistic in ("top_changed", "score_change"):  # attained, up to the random search
        assert (seen >= 0.8 * most).all()
    else:
        assert (seen[sizes == 2] == most[sizes == 2]).all() and seen.sum() > 0.8 * most.sum()


# The certificate


def flip(X):
    X[:, -1] = 1 - X[:, -1]
    return X


def longer(X):
    X[:, 0] += 1.0 + X[:, 1]
    return X


@pytest.fixture
def task():
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 7, 40)
    qid = rng.permutation(np.repeat([f"q{k:02d}" for k in range(40)], sizes))
    X = np.column_stack([rng.normal(size=(len(qid), 2)), rng.integers(0, 2, len(qid))])
    return X, rng.integers(0, 4, len(qid)), qid


@pytest.mark.parametrize("statistic", STATISTICS)
def test_of_each_query_the_worst_hypothetical_counts(task, statistic):
    X, _, qid = task
    ranker, tables = Weights(1.0, -0.5, 0.8), {"flip": flip(X.copy()), "longer": longer(X.copy())}
    got = fairness_certificate(ranker, X, qid=qid, hypotheticals=[flip, longer], statistic=statistic)
    s = ranker.predict(X)
    for row, q in zip(got.per_query.itertuples(), np.unique(qid), strict=True):
        each = {name: by_pairs(statistic, s[qid == q], ranker.predict(Z)[qid == q]) for name, Z in tables.items()}
        assert row.qid == q and row.unfairness == pytest.approx(max(each.values()), abs=1e-12)
        assert row.hypothetical == (max(each, key=each.get) if row.unfairness > 0 else None)
    assert got.value == pytest.approx(got.per_query["unfairness"].mean())
    assert (got.n_queries, got.statistic, got.hypotheticals) == (40, statistic, ["flip", "longer"])
    if statistic == "score_change":
        assert got.upper_bound is None and "no bound" in repr(got) and "no bound" in got._repr_html_()
    else:
        assert got.upper_bound == upper_confidence_bound(got.per_query["unfairness"])
        assert f"{100 * got.upper_bound:.2f}%" in repr(got) and "95% confidence" in repr(got)
    rows = fairness_certificate(ranker, X, qid=qid, X_hypothetical=tables, statistic=statistic)
    pd.testing.assert_frame_equal(rows.per_query, got.per_query)
    pickle.loads(pickle.dumps(got))


def test_weights_of_queries(task):
    X, _, qid = task
    weight = dict(zip(np.unique(qid), np.random.default_rng(0).exponential(size=40), strict=True)) | {"q03": 0.0}
    got = fairness_certificate(Weights(1, 1, 1), X, qid=qid, hypotheticals=flip, query_weight=weight)
    w = [weight[q] for q in got.per_query["qid"]]
    assert got.value == pytest.approx(np.average(got.per_query["unfairness"], weights=w))
    assert got.upper_bound == upper_confidence_bound(got.per_query["unfairness"], weight=w)
    firm = np.array([str(q)[-1] for q in qid])
    kw = {"qid": qid, "hypotheticals": flip, "query_weight": weight}
    of_firms = fairness_certificate(Weights(1, 1, 1), X, clusters=firm, **kw)
    labels = [q[-1] for q in of_firms.per_query["qid"]]
    bound = upper_confidence_bound(got.per_query["unfairness"], weight=w, clusters=labels)
    assert of_firms.value == got.value and of_firms.upper_bound == bound > got.upper_bound
    assert of_firms.n_clusters == 10 and "40 queries of 10 clusters" in repr(of_firms)
    page = fairness_certificate(Weights(1, 1, 1), X, qid=qid, hypotheticals={"<b>&": flip})._repr_html_()
    assert "<b>&" not in page and "&lt;b&gt;&amp;" in page


def frame_of(X):
    levels = np.array(["m", "f"])[X[:, 2].astype(int)]
    return pd.DataFrame({"size": X[:, 0], "age": X[:, 1], "sex": levels}, index=np.arange(len(X)) * 3)


def other_sex(frame):
    frame["sex"] = frame["sex"].map({"m": "f", "f": "m"}).astype(frame["sex"].dtype)
    return frame


RANKERS = {
    "lightgbm with categories": (
        lambda: QueryRanker(LGBMRanker(n_estimators=5, min_child_samples=2, n_jobs=1, verbose=-1)),
        "category",
    ),
    "strings": (
        lambda: make_pipeline(
            make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough"), LinearRegression()
        ),
        object,
    ),
}


@pytest.mark.parametrize("name", RANKERS)
def test_any_ranker(task, name):
    X, y, qid = task
    make, dtype = RANKERS[name]
    table, ranker, function = frame_of(X).astype({"sex": dtype}), make(), other_sex
    labels = (y + X[:, 2]).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these fits are too short
        ranker.fit(table, labels, **({} if isinstance(ranker, Pipeline) else {"qid": qid}))
    before = table.copy()
    got = fairness_certificate(ranker, table, qid=qid, hypotheticals=[function])
    s, other = ranker.predict(table), ranker.predict(function(table.copy()))
    expected = [by_pairs("discordance", s[qid == q], other[qid == q]) for q in np.unique(qid)]
    np.testing.assert_allclose(got.per_query["unfairness"], expected, atol=1e-12)
    assert got.value < got.upper_bound < 1
    pd.testing.assert_frame_equal(table, before)


def test_a_re_ranker_gets_the_labels_of_the_rows_whose_place_is_taken(task):
    """DetConstSort around a score of x_1: of each query by hand, with the labels of X for both lists."""
    X, y, qid = task
    group = np.where(X[:, 2] > 0, "f", "m")
    inner = LinearRegression().fit(X, X[:, 0])
    re_ranker = DetConstSortRanker(FrozenEstimator(inner), proportions={"f": 0.5, "m": 0.5})
    re_ranker.fit(X, y, qid=qid, sensitive_features=group)
    ranks, other = (re_ranker.rank(Z, qid=qid, sensitive_features=group) for Z in (X, longer(X.copy())))
    kw = {"qid": qid, "hypotheticals": longer, "sensitive_features": group}
    got = fairness_certificate(re_ranker, X, **kw)
    expected = [by_pairs("discordance", -ranks[qid == q], -other[qid == q]) for q in np.unique(qid)]
    np.testing.assert_allclose(got.per_query["unfairness"], expected, atol=1e-12)
    assert got.value > 0
    plain = fairness_certificate(inner, X, **kw)  # who asks for no groups is not told of them
    pd.testing.assert_frame_equal(
        plain.per_query, fairness_certificate(inner, X, qid=qid, hypotheticals=longer).per_query
    )
    with pytest.raises(ValueError, match="sensitive_features has 2 entries for .* rows"):
        fairness_certificate(inner, X, qid=qid, hypotheticals=longer, sensitive_features=["f", "m"])
    with pytest.raises(ValueError, match="sensitive_features is missing"):
        fairness_certificate(re_ranker, X, qid=qid, hypotheticals=longer)


def test_errors_say_what_to_do(task):
    X, _, qid = task
    ranker, kw = Weights(1, 1, 1), {"qid": qid, "hypotheticals": flip}
    with pytest.raises(ValueError, match="no hypothetical rows"):
        fairness_certificate(ranker, X, qid=qid)
    with pytest.raises(ValueError, match="statistic='tau'.*discordance"):
        fairness_certificate(ranker, X, statistic="tau", **kw)
    with pytest.raises(ValueError, match="confidence=2"):
        fairness_certificate(ranker, X, confidence=2, **kw)
    with pytest.raises(ValueError, match="qid has 2 entries"):
        fairness_certificate(ranker, X, qid=[0, 1], hypotheticals=flip)
    with pytest.raises(TypeError, match="hypothetical rows must be a table like X"):
        fairness_certificate(ranker, X, qid=qid, hypotheticals="flip")
    with pytest.raises(ValueError, match="Weights has neither coef_ nor a score_function_"):
        fairness_certificate(ranker, X, metric=SensitiveSubspaceMetric(directions=[[0, 0, 1]]).fit(X), qid=qid)


def test_a_certificate_that_says_nothing_says_so():
    X, ranker = np.arange(6.0).reshape(3, 2), LinearRegression().fit([[0.0, 0], [1, 0], [0, 1]], [0, 1, 2])
    with pytest.warns(UserWarning, match="3 rows is a query of its own"):
        assert fairness_certificate(ranker, X, qid=[0, 1, 2], hypotheticals=lambda X: -X).value == 0
    for rows in (X, X.astype(object), pd.DataFrame(X)):
        with pytest.warns(UserWarning, match="'copied' changes no row"):
            fairness_certificate(ranker, rows, qid=[0, 0, 0], X_hypothetical={"copied": rows.copy()})


def test_hypotheticals_that_learn_must_have_learned_elsewhere(task):
    X, _, qid = task
    near = Hypotheticals(n_neighbors=2, metric=[[0, 0, 1.0]])
    with pytest.raises(ValueError, match="fit it on training rows first"):
        fairness_certificate(Weights(1, 1, 1), X, qid=qid, hypotheticals=near)
    got = fairness_certificate(Weights(1, 1, 1), X, qid=qid, hypotheticals=near.fit(X + 0.01))
    assert got.hypotheticals == ["neighbour 1", "neighbour 2"]
    steps = Hypotheticals(directions=True, steps=(1.0,))
    metric = SensitiveSubspaceMetric(directions=[[0, 0, 2.0]]).fit(X)
    got = fairness_certificate(Weights(1, 1, 1), X, qid=qid, hypotheticals=steps, metric=metric)
    assert len(got.hypotheticals) == 1 and not hasattr(steps, "names_")


# Attacks


@pytest.fixture
def fair_task(task):
    X, y, qid = task
    metric = SensitiveSubspaceMetric(directions=[[0.0, 0.2, 1.0]]).fit(X)
    kw = {"metric": metric, "max_iter": 40, "rho": 0.01, "random_state": 0}
    return (
        X,
        qid,
        {
            "linear": SenSTIRRanker(**kw).fit(X, y, qid=qid),
            "network": SenSTIRRanker(score_function=MLPScore((5,)), **kw).fit(X, y, qid=qid),
        },
    )


@pytest.mark.parametrize(
    "adversary", [ExactBudget(0.3, 0.5), ExactBudget(0.3, 0.0), ExactBudget(0.0, 0.5), ExactBox(0.5, 0.1)], ids=str
)
def test_closed_forms_of_queries_average_to_the_regularizer(fair_task, adversary):
    X, qid, rankers = fair_task
    got = fairness_certificate(rankers["linear"], X, qid=qid, statistic="score_change", adversary=adversary)
    expected = invariance_regularizer(rankers["linear"], X, qid=qid, adversary=adversary)
    assert got.value == pytest.approx(expected, rel=1e-9)
    sizes = pd.Series(qid).value_counts().sort_index().to_numpy()
    assert (np.diff(got.per_query["unfairness"].to_numpy()[np.argsort(sizes)]) >= -1e-12).all()


@pytest.mark.parametrize("statistic", STATISTICS)
def test_ascent_of_linear_scores_is_the_closed_form(fair_task, statistic):
    X, qid, rankers = fair_task
    kw = {"qid": qid, "adversary": ExactBox(0.05, 0.02), "statistic": statistic}
    exact, ascent = (fairness_certificate(rankers["linear"], X, method=m, **kw) for m in ("auto", "ascent"))
    assert 0 < exact.value == pytest.approx(ascent.value, rel=1e-9)
    assert set(ascent.per_query["hypothetical"]) <= {"ExactBox", None}


@pytest.mark.parametrize("statistic", STATISTICS)
def test_random_moves_within_the_box_do_no_more_than_the_attack(fair_task, statistic):
    X, qid, rankers = fair_task
    ranker, rng = rankers["network"], np.random.default_rng(0)
    got = fairness_certificate(ranker, X, qid=qid, adversary=ExactBox(0.5, 0.1), statistic=statistic)
    s, seen = ranker.predict(X), np.zeros(40)
    for _ in range(40):
        moved = X + rng.choice([-0.5, 0.5], (len(X), 1)) * ranker.metric_.directions_ + rng.choice([-0.1, 0.1], X.shape)
        queries, other = Queries.from_qid(qid, len(X)), ranker.predict(moved)
        seen = np.maximum(seen, STATISTICS[statistic](queries.group(s), queries.group(other), queries))
    assert (seen <= got.per_query["unfairness"] + 1e-12).all() and seen.mean() > 0.3 * got.value > 0


@pytest.mark.filterwarnings("ignore:Nothing is left to rank by")
def test_ascent_finds_the_corner_of_a_bent_score():
    """h = tanh(3 x_1) + tanh(-x_2): monotone, so that its extremes are in corners; scores in between lie in the interval."""
    score, theta = MLPScore((2,)), np.array([3.0, 0.0, 0.0, -1.0, 0.0, 0.0, 1.0, 1.0])
    x = np.random.default_rng(0).normal(size=(50, 2))
    metric = SensitiveSubspaceMetric(directions=[[0.2, 0.0], [0.0, 0.4]]).fit(x)
    items = SimpleNamespace(sizes=np.array([50]), weights=np.ones(1), n_features=2)
    bounds = ExactBox(1.0, 0.0).bounds(items, metric)
    low, high = bounds.score_bounds(score, theta, x, np.random.default_rng(1))
    for side, found in ((-1, low), (1, high)):
        expected = np.tanh(3 * (x[:, 0] + side * 0.2)) + np.tanh(-(x[:, 1] - side * 0.4))
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_attacks_say_what_they_cannot_do(fair_task):
    X, qid, rankers = fair_task
    for message, ranker, kw in (
        ("one budget for all queries", rankers["linear"], {"adversary": "exact"}),
        ("adversary='magic'", rankers["linear"], {"adversary": "magic"}),
        ("names no bounds of single items", rankers["linear"], {"adversary": "ascent"}),
        ("gap_radius", rankers["linear"], {"adversary": ExactGaps(-1)}),
        ("method='descent'", rankers["linear"], {"adversary": ExactBox(), "method": "descent"}),
        ("last step", make_pipeline(StandardScaler().fit(X), rankers["linear"]), {"adversary": ExactBox()}),
        ("not X @ coef_", PoissonRegressor().fit(X, X[:, 2]), {"adversary": ExactBox()}),
    ):
        with pytest.raises(ValueError, match=message):
            fairness_certificate(ranker, X, qid=qid, **{"metric": rankers["linear"].metric_} | kw)


# The display


def test_display(task):
    plt = pytest.importorskip("matplotlib.pyplot")
    X, _, qid = task
    ranker = Weights(1.0, -0.5, 0.8)
    display = CertificateDisplay.from_estimator(ranker, X, qid=qid, hypotheticals=flip, confidence=0.9)
    found = display.certificate
    assert display.name == "Weights" and found.confidence == 0.9
    assert display.bound_.get_ydata()[0] == found.upper_bound and display.mean_.get_ydata()[0] == found.value
    np.testing.assert_array_equal(display.line_.get_ydata()[:-1], np.sort(found.per_query["unfairness"])[::-1])
    scores, other = ranker.predict(X), ranker.predict(flip(X.copy()))
    same = CertificateDisplay.from_estimator(
        scores, qid=qid, hypotheticals={"flip": other}, ax=plt.figure().add_subplot()
    )
    pd.testing.assert_frame_equal(same.certificate.per_query, found.per_query)
    unbounded = CertificateDisplay.from_estimator(ranker, X, qid=qid, hypotheticals=flip, statistic="score_change")
    assert unbounded.bound_ is None
    plt.close("all")


# The certificate as a whole


@pytest.mark.parametrize("statistic", ["discordance", "top_changed"])
def test_bounds_hold_for_new_queries(statistic):
    """150 audits of 40 queries at 80 %; the mean over new queries is that of 20 000 from the same generator."""
    rng, ranker = np.random.default_rng(7), Weights(1.0, 0.4)

    def queries(n):
        return np.column_stack([rng.normal(size=4 * n), rng.integers(0, 2, 4 * n)]), np.repeat(np.arange(n), 4)

    def certificate(n):
        X, qid = queries(n)
        return fairness_certificate(ranker, X, qid=qid, hypotheticals=flip, statistic=statistic, confidence=0.8)

    truth = certificate(20_000).value
    missed = sum(certificate(40).upper_bound < truth for _ in range(150))
    assert missed <= 150 * 0.2 + 3 * np.sqrt(150 * 0.2 * 0.8)
