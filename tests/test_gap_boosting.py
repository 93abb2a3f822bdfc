"""GapBoostingRanker: gaps of columns of any kind, from definitions; what LightGBM, CatBoost and XGBoost make of the weights."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import scipy.stats
from lightgbm import LGBMClassifier, LGBMRanker, LGBMRegressor
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairrank import GapBoostingRanker, PlackettLuceRanker, QueryRanker

LIGHTGBM = LGBMRanker(n_estimators=8, num_leaves=5, min_child_samples=5, random_state=0, n_jobs=1, verbose=-1)


def catboost(**settings):
    module = pytest.importorskip("catboost")
    settings = {"iterations": 8, "random_seed": 0, "thread_count": 1, "verbose": False, **settings}
    return module.CatBoostRanker(allow_writing_files=False, **settings)


def xgboost(**settings):
    module = pytest.importorskip("xgboost")
    return module.XGBRanker(**{"n_estimators": 8, "max_depth": 3, "random_state": 0, "n_jobs": 1, **settings})


def task(n_queries=30, seed=0):
    """Of five columns the first shows the group (nearly) alone; the labels follow it and the third. Rows in random order."""
    rng = np.random.default_rng(seed)
    n = 8 * n_queries
    group = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 5))
    X[:, 0] = group + 0.3 * rng.normal(size=n)
    X[:, 1] += 0.5 * group
    X[:, 4] = 7.0
    y = np.digitize(X[:, 2] + 1.5 * group + 0.3 * rng.normal(size=n), [0.0, 1.0, 2.0])
    return X, y, rng.permutation(np.repeat([f"q{k}" for k in range(n_queries)], 8)), group


X, Y, QID, GROUP = task()


def gaps(X, attribute, **settings):
    X = X if hasattr(X, "shape") else pd.DataFrame(X)
    model = settings.pop("model", LGBMRegressor(n_estimators=1, n_jobs=1, verbose=-1))
    y = np.zeros(X.shape[0])
    return GapBoostingRanker(model, **settings).fit(X, y, qid=np.zeros(len(y)), sensitive_features=attribute).raw_gaps_


# Gaps of numbers


def test_standardized_gaps_are_differences_of_means_in_standard_deviations():
    expected = np.abs(X[GROUP == 1].mean(axis=0) - X[GROUP == 0].mean(axis=0)) / np.where(X.std(0) > 0, X.std(0), 1)
    found = gaps(X, GROUP)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert list(found.index) == [0, 1, 2, 3, 4] and found[4] == 0
    np.testing.assert_allclose(
        gaps(X * [1e-200, 1e200, -3, 1, 1] + [0, 0, 50, 0, 0], GROUP)[:3], expected[:3], rtol=1e-9
    )


def test_ks_gaps_are_those_of_scipy():
    rounded = X.round(1)  # with ties
    expected = [scipy.stats.ks_2samp(column[GROUP == 0], column[GROUP == 1]).statistic for column in rounded.T]
    np.testing.assert_allclose(gaps(rounded, GROUP, gap="ks"), expected, rtol=1e-12)
    np.testing.assert_allclose(gaps(np.exp(rounded), GROUP, gap="ks"), expected, rtol=1e-12)  # whatever the scale


def test_of_several_groups_the_two_farthest_apart_count():
    labels = np.array(["a", "b", "c"])[np.arange(len(X)) % 3]
    parts = [X[labels == label] for label in "abc"]
    pairs = [(0, 1), (0, 2), (1, 2)]
    means = [np.abs(parts[a].mean(0) - parts[b].mean(0)) for a, b in pairs]
    expected = np.max(means, axis=0)[:4] / X.std(0)[:4]
    np.testing.assert_allclose(gaps(X, labels)[:4], expected, rtol=1e-10)
    expected = np.max(
        [[scipy.stats.ks_2samp(*(parts[k][:, j] for k in pair)).statistic for j in range(4)] for pair in pairs], axis=0
    )
    np.testing.assert_allclose(gaps(X, labels, gap="ks")[:4], expected, rtol=1e-12)


def test_a_numeric_attribute_has_correlations_or_halves():
    age = 40 + 10 * X[:, 3] + np.random.default_rng(1).normal(size=len(X))
    bins = np.searchsorted(np.quantile(age, np.arange(1, 10) / 10), age)
    means = np.stack([X[bins == k, :4].mean(axis=0) for k in range(10)])[bins]
    slopes = [abs(scipy.stats.pearsonr(column, age)[0]) for column in X[:, :4].T]
    np.testing.assert_allclose(gaps(X, age)[:4], np.maximum(slopes, means.std(0) / X.std(0)[:4]), rtol=1e-9)
    far = np.abs(age - np.median(age))
    halves = age > np.median(age), far > np.median(far)
    expected = [max(scipy.stats.ks_2samp(x[half], x[~half]).statistic for half in halves) for x in X.T]
    np.testing.assert_allclose(gaps(X, age, gap="ks"), expected, rtol=1e-12)


# Gaps of what is missing


@pytest.mark.parametrize("gap", ["standardized", "ks"])
def test_missing_values_may_give_the_group_away(gap):
    """Numbers that tell nothing, missing for 4 of 6 women and 1 of 6 men: 1/2 between the shares, of mean 5/12."""
    column = np.array([1, 2, np.nan, np.nan, np.nan, np.nan, 1, 2, 1, 2, np.nan, 1.5])
    group = np.repeat(["woman", "man"], 6)
    expected = 0.5 / np.sqrt(5 / 12 * 7 / 12) if gap == "standardized" else 0.5
    assert gaps(column[:, None], group, gap=gap)[0] == pytest.approx(expected)
    told = column.copy()
    told[6:] += 100  # now the values tell more than what is missing: 101.5 on average for 1.5, all apart
    present = ~np.isnan(told)
    expected = 100 / np.std(told[present]) if gap == "standardized" else 1.0
    assert gaps(told[:, None], group, gap=gap)[0] == pytest.approx(expected)


def test_infinite_values_count_like_the_farthest_number():
    column = np.array([0.0, 1.0, 2.0, np.inf, 5.0, -np.inf] * 4)
    group = [0, 0, 0, 1, 1, 1] * 4
    plain = np.array([0.0, 1.0, 2.0, 5.0, 5.0, 0.0] * 4)
    assert gaps(column[:, None], group)[0] == gaps(plain[:, None], group)[0]


# Gaps of categories


def test_categories_have_the_total_variation_distance():
    """Women: 3 a, 1 b; men: 1 a, 2 b, 1 c. Half of |3/4 - 1/4| + |1/4 - 2/4| + |0 - 1/4| is 1/2; it is a's share, of 4 in 8."""
    frame = pd.DataFrame({"job": pd.Categorical(list("aaababbc") * 100, categories=list("cbax"))})
    group = np.tile(np.repeat(["woman", "man"], 4), 100)
    assert gaps(frame, group, gap="ks")["job"] == 0.5
    assert gaps(frame, group)["job"] == pytest.approx(0.5 / np.sqrt(0.5 * 0.5))


@pytest.mark.parametrize("gap", ["standardized", "ks"])
def test_among_categories_missing_is_one_more(gap):
    values = np.array(["a", "b"], object)[(X[:, 3] > 0).astype(int)]
    values[X[:, 0] > 0.8] = None
    named = np.where(pd.isna(values), "missing", values)
    frame = pd.DataFrame({"missing": pd.Categorical(values), "named": pd.Categorical(named)})
    found = gaps(frame, GROUP, gap=gap)
    assert found["missing"] == found["named"] > 0.3


def test_codes_that_the_model_takes_for_categories_have_no_order():
    """Categories 0 and 2 are women's, 1 is men's: the means are equal, and yet the column tells all."""
    codes, group = np.array([0, 2, 1, 1] * 40)[:, None], np.array([0, 0, 1, 1] * 40)
    y, qid = np.zeros(160), np.zeros(160)
    kw = {"qid": qid, "sensitive_features": group}
    assert gaps(codes, group)[0] == 0
    for named in ([0], "0", np.array([0])):
        ranker = GapBoostingRanker(LGBMRegressor(n_estimators=1, n_jobs=1, verbose=-1)).set_params(gap="ks")
        assert ranker.fit(codes, y, categorical_feature=named, **kw).raw_gaps_[0] == 1.0
    frame = pd.DataFrame(codes, columns=["job"])
    ranker = GapBoostingRanker(LIGHTGBM).fit(frame, y.astype(int), categorical_feature="name:job", **kw)
    assert ranker.raw_gaps_["job"] == 2
    model = catboost(loss_function="QueryRMSE")
    assert GapBoostingRanker(model).fit(codes, np.arange(160) % 3, cat_features=[0], **kw).raw_gaps_[0] == 2.0


# Odd attributes, odd containers


def test_one_group_only_leaves_the_plain_model_with_a_warning():
    with pytest.warns(UserWarning, match="has one value only: no column has a gap"):
        ranker = GapBoostingRanker(LIGHTGBM).fit(X, Y, qid=QID, sensitive_features=np.zeros(len(X)))
    assert (ranker.gaps_ == 0).all() and (ranker.weights_ == 1).all()
    np.testing.assert_array_equal(ranker.predict(X), QueryRanker(LIGHTGBM).fit(X, Y, qid=QID).predict(X))


@pytest.mark.parametrize(
    "convert",
    [lambda Z: pd.DataFrame(Z).astype("Float64"), sp.csc_array, lambda Z: pl.DataFrame(Z, schema=list("abcde"))],
)
def test_gaps_are_those_of_any_container(convert):
    np.testing.assert_allclose(gaps(convert(X), GROUP), gaps(X, GROUP), rtol=1e-12)


# What the libraries do with the weights


def test_lightgbm_has_the_weights_as_feature_contri():
    ranker = GapBoostingRanker(LIGHTGBM, strength=3.0).fit(X, Y, qid=QID, sensitive_features=GROUP)
    np.testing.assert_allclose(ranker.weights_, np.exp(-3.0 * ranker.gaps_))
    by_hand = clone(LIGHTGBM).set_params(feature_contri=np.exp(-3.0 * ranker.gaps_).tolist())
    np.testing.assert_array_equal(ranker.predict(X), QueryRanker(by_hand).fit(X, Y, qid=QID).predict(X))
    assert not np.array_equal(ranker.predict(X), QueryRanker(LIGHTGBM).fit(X, Y, qid=QID).predict(X))
    assert "feature_contri" not in LIGHTGBM.get_params()


@pytest.mark.parametrize("make", [lambda: LIGHTGBM, catboost, lambda: xgboost(colsample_bynode=0.6), xgboost])
def test_strength_zero_is_the_plain_model(make):
    model = make()
    ranker = GapBoostingRanker(model, strength=0.0).fit(X, Y, qid=QID, sensitive_features=GROUP)
    np.testing.assert_array_equal(ranker.predict(X), QueryRanker(model).fit(X, Y, qid=QID).predict(X))
    assert ranker.gaps_[0] > 1


@pytest.mark.parametrize("alias", ["feature_contri", "feature_penalty", "fc"])
def test_a_users_own_weights_are_multiplied(alias):
    own = [1.0, 0.5, 0.2, 1.0, 1.0]
    model = clone(LIGHTGBM).set_params(**{alias: own})
    ranker = GapBoostingRanker(model, strength=2.0).fit(X, Y, qid=QID, sensitive_features=GROUP)
    by_hand = clone(LIGHTGBM).set_params(feature_contri=(own * np.exp(-2.0 * ranker.gaps_)).tolist())
    np.testing.assert_array_equal(ranker.predict(X), QueryRanker(by_hand).fit(X, Y, qid=QID).predict(X))
    assert model.get_params()[alias] == own


@pytest.mark.parametrize("own", ["(1,0.5,0.2,1,1)", "1:0.5,2:0.2", "b:0.5,c:0.2"])
def test_catboost_has_them_as_feature_weights_without_noise(own):
    """Text is the only form of them with which scikit-learn can clone CatBoost."""
    frame = pd.DataFrame(X, columns=list("abcde"))
    ranker = GapBoostingRanker(catboost(feature_weights=own), strength=2.0)
    ranker.fit(frame, Y, qid=QID, sensitive_features=GROUP)
    by_hand = catboost(random_strength=0)
    by_hand.set_params(feature_weights=(np.array([1, 0.5, 0.2, 1, 1]) * np.exp(-2.0 * ranker.gaps_)).tolist())
    order = np.argsort(QID, kind="stable")
    by_hand.fit(frame.iloc[order], Y[order], group_id=QID[order])
    np.testing.assert_array_equal(ranker.predict(frame), by_hand.predict(frame))


@pytest.mark.parametrize("model", [PlackettLuceRanker(), make_pipeline(StandardScaler(), LIGHTGBM)])
def test_models_that_weigh_no_columns_are_refused(model):
    with pytest.raises(ValueError, match="LightGBM|LGBMRanker"):
        GapBoostingRanker(model).fit(X, Y, qid=QID, sensitive_features=GROUP)


def test_a_strength_that_leaves_nothing_is_refused():
    with pytest.raises(ValueError, match="leaves no column of X any weight: the smallest gap is"):
        GapBoostingRanker(LIGHTGBM, strength=1e4).fit(X[:, :2], Y, qid=QID, sensitive_features=GROUP)
    left = GapBoostingRanker(LIGHTGBM, strength=1e4).fit(X[:, [0, 1, 4]], Y, qid=QID, sensitive_features=GROUP)
    assert left.estimator_.feature_importances_.sum() == 0  # a constant column is left


# At home in scikit-learn


@pytest.mark.parametrize(
    "own, message",
    [
        ([1.0, 2.0], "one number for each of the 5 columns"),
        ("1,much", "give numbers as in"),
        ({"z": 1.0}, "column 'z'"),
    ],
)
def test_own_weights_that_do_not_fit_are_refused(own, message):
    model = clone(LIGHTGBM).set_params(feature_contri=own)
    with pytest.raises(ValueError, match=message):
        GapBoostingRanker(model).fit(X, Y, qid=QID, sensitive_features=GROUP)


def test_xgboost_samples_columns_by_the_weights_or_is_refused():
    with pytest.raises(ValueError, match="XGBRanker weighs columns only where it samples them.*colsample_bynode"):
        GapBoostingRanker(xgboost()).fit(X, Y, qid=QID, sensitive_features=GROUP)
    model, order = xgboost(colsample_bynode=0.4), np.argsort(QID, kind="stable")
    ranker = GapBoostingRanker(model, strength=3.0).fit(X, Y, qid=QID, sensitive_features=GROUP)
    weights = {"feature_weights": np.exp(-3.0 * ranker.gaps_).tolist()}
    is_parameter = "feature_weights" in model.get_params()  # since 3.0
    by_hand = clone(model).set_params(**weights if is_parameter else {})
    codes = np.unique(QID[order], return_inverse=True)[1]
    by_hand.fit(X[order], Y[order], qid=codes, **{} if is_parameter else weights)
    np.testing.assert_array_equal(ranker.predict(X), by_hand.predict(X))


# Columns as the model sees them


def test_what_the_model_takes_for_missing_is_missing():
    """A mark for 30 % of the rows would drown the values of the column in its standard deviation."""
    rare = np.random.default_rng(0).random(len(X)) < 0.3
    expected = gaps(np.where(rare, np.nan, X[:, 0])[:, None], GROUP)[0]
    for model, mark in [
        (xgboost(missing=-999.0, colsample_bynode=0.5), -999.0),
        (clone(LIGHTGBM).set_params(zero_as_missing=True), 0.0),
    ]:
        marked = np.column_stack([np.where(rare, mark, X[:, 0]), X[:, 1]])
        ranker = GapBoostingRanker(model).fit(marked, Y, qid=QID, sensitive_features=GROUP)
        assert ranker.raw_gaps_[0] == pytest.approx(expected)
    # XGBoost takes for missing what a sparse X leaves out, LightGBM and CatBoost take it for 0.
    zeros = np.column_stack([np.where(rare, 0.0, X[:, 0]), X[:, 1]])
    for model, value in [(xgboost(colsample_bynode=0.5), expected), (LIGHTGBM, gaps(zeros, GROUP)[0])]:
        ranker = GapBoostingRanker(model).fit(sp.csr_matrix(zeros), Y, qid=QID, sensitive_features=GROUP)
        assert ranker.raw_gaps_[0] == pytest.approx(value)


def test_ordered_categories_are_numbers_to_lightgbm_and_decimals_to_all():
    codes = np.round(10 * X[:, 2]).astype(int)
    frame = pd.DataFrame({"x": pd.Categorical(codes, ordered=True), "y": X[:, 1]})
    ranks = np.unique(codes, return_inverse=True)[1]
    found = GapBoostingRanker(LIGHTGBM).fit(frame, Y, qid=QID, sensitive_features=GROUP).raw_gaps_["x"]
    assert found == pytest.approx(gaps(ranks[:, None].astype(float), GROUP)[0])
    decimals = pd.DataFrame({"x": [Decimal(int(code)) for code in codes], "y": X[:, 1]})
    found = GapBoostingRanker(catboost()).fit(decimals, Y, qid=QID, sensitive_features=GROUP).raw_gaps_["x"]
    assert found == pytest.approx(gaps(codes[:, None].astype(float), GROUP)[0])


@pytest.mark.parametrize(
    "make, name",
    [
        *[
            (lambda n=n: clone(LIGHTGBM).set_params(**{n: 0.4}), n)
            for n in ("colsample_bytree", "feature_fraction_bynode")
        ],
        *[(lambda n=n: catboost(**{n: 0.4}), n) for n in ("rsm", "colsample_bylevel")],
    ],
)
def test_sampled_columns_are_warned_of(make, name):
    with pytest.warns(UserWarning, match=rf"samples columns \({name}=0.4\)"):
        GapBoostingRanker(make()).fit(X, Y, qid=QID, sensitive_features=GROUP)


def test_a_classifier_of_text_is_refused():
    with pytest.raises(ValueError, match="give y as"):
        GapBoostingRanker(LGBMClassifier()).fit(X, np.where(Y > 1, "hire", "no"), qid=QID, sensitive_features=GROUP)


# Where gaps mislead


def told_together(n_others, seed=0):
    """A group that two columns tell by whether their signs agree, and one that is shifted; the labels are against the group."""
    rng = np.random.default_rng(seed)
    group, a = (rng.random(2000) < 0.5).astype(int), rng.normal(size=2000)
    b = np.abs(rng.normal(size=2000)) * np.sign(a) * np.where(group == 1, -1, 1)
    X = np.column_stack([rng.normal(size=2000) - group, a, b, rng.normal(size=(2000, n_others))])
    return X, (rng.normal(size=2000) - 1.2 * group > 0).astype(int), np.repeat(np.arange(200), 10), group


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost", "numeric", "categories"])
def test_columns_that_tell_the_group_only_together_are_told(library):
    X, y, qid, group = told_together(1)
    model = {
        "xgboost": lambda: xgboost(colsample_bynode=0.5),
        "catboost": catboost,
    }.get(library, lambda: LIGHTGBM)()
    if library == "numeric":
        group = group + np.random.default_rng(0).normal(scale=0.1, size=len(group))
    if library == "categories":
        X = pd.DataFrame(X, columns=list("pqrs"))
        X["q"], X["r"] = (pd.cut(X[name], [-9, -1, 0, 1, 9]).astype(str).astype("category") for name in "qr")
    with pytest.warns(UserWarning, match=r"columns .* tell sensitive attribute \(.*\) together \(AUC (1\.00|0\.[89])"):
        GapBoostingRanker(model).fit(X, y, qid=qid, sensitive_features=group)


def test_gaps_that_are_alike_in_all_columns_are_told():
    rng = np.random.default_rng(0)
    group, skill = (rng.random(2000) < 0.4).astype(int), rng.normal(size=(2000, 1))
    X, qid = skill + 0.8 * rng.normal(size=(2000, 12)), np.repeat(np.arange(200), 10)
    y = (skill[:, 0] - 1.2 * group > 0.5).astype(int)
    model = LGBMRanker(n_estimators=20, num_leaves=7, n_jobs=1, verbose=-1)
    with pytest.warns(UserWarning, match="nearly the same in all columns"):
        GapBoostingRanker(model).fit(X - group[:, None], y, qid=qid, sensitive_features=group)
    GapBoostingRanker(model).fit(X - group[:, None] * (np.arange(12) % 2), y, qid=qid, sensitive_features=group)
    GapBoostingRanker(model).fit(X, y, qid=qid, sensitive_features=group)  # nothing to tell, and no warning
