"""Kinds of faults that users of boosting, tables and metrics reported to the trackers of other projects, tried on this one."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skfairrank import GapBoostingRanker, QueryRanker, SenSTIRBoostingRanker
from skfairrank.files import read_ranking
from skfairrank.inspection import audit, exposure_by_group
from skfairrank.metrics import ndcg_score

lightgbm, xgboost, catboost = (pytest.importorskip(name) for name in ("lightgbm", "xgboost", "catboost"))
RNG = np.random.default_rng(0)
QID = RNG.permutation(np.repeat(np.arange(12), 6))
X, GROUP = RNG.normal(size=(72, 3)).round(1), RNG.permutation(np.repeat(["a", "b"], 36))
Y = np.clip(np.round(X[:, 0] + 1), 0, 3).astype(int)
PROXY = (GROUP == "a") * 1.0


def light(**settings):
    return lightgbm.LGBMRanker(n_estimators=5, min_child_samples=2, n_jobs=1, verbose=-1, **settings)


def extreme(**settings):
    return xgboost.XGBRanker(n_estimators=5, max_depth=3, n_jobs=1, random_state=0, **settings)


def cat(**settings):
    settings |= {"iterations": 5, "depth": 2, "thread_count": 1, "verbose": False, "allow_writing_files": False}
    return catboost.CatBoostRanker(**settings)


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i2"])
@pytest.mark.parametrize("wrap", [QueryRanker, lambda model: SenSTIRBoostingRanker(model, rho=0, random_state=0)])
def test_numbers_of_another_byte_order_are_the_same_numbers(dtype, wrap):
    """XGBoost reads their bytes as if they were in its own order (dmlc/xgboost, issue 12433)."""
    table, plain = (X * 10).round().astype(dtype), (X * 10).round()
    expected = wrap(extreme()).fit(plain, Y, qid=QID).predict(plain)
    assert len(np.unique(expected)) > 5
    evaluation = {"eval_set": [(table, Y.astype(dtype))], "eval_qid": [QID]}
    ranker = wrap(extreme()).fit(table, Y.astype(dtype), qid=QID, **evaluation)
    np.testing.assert_array_equal(ranker.predict(table), expected)
    np.testing.assert_array_equal(ranker.predict(plain), expected)


@pytest.mark.parametrize("make", [light, extreme, cat])
def test_entries_of_a_sparse_matrix_in_one_place_are_their_sum(make):
    columns, rows = np.tile(range(3), 72), np.arange(73)
    plain = sparse.csr_matrix((X.ravel(), columns, 3 * rows))
    doubled = sparse.csr_matrix((np.repeat(X / 2, 2), np.repeat(columns, 2), 6 * rows))
    expected = QueryRanker(make()).fit(plain, Y, qid=QID).predict(plain)
    np.testing.assert_array_equal(QueryRanker(make()).fit(doubled, Y, qid=QID).predict(doubled), expected)
    assert doubled.nnz == 6 * 72


@pytest.mark.parametrize("dtype", ["double[pyarrow]", "int64[pyarrow]", "Float64", "Int64", "bool"])
def test_a_gap_does_not_depend_on_how_numbers_are_stored(dtype):
    frame = pd.DataFrame(X, columns=list("xyz")).assign(proxy=pd.Series(PROXY).astype(dtype))
    ranker = GapBoostingRanker(extreme(colsample_bynode=0.5)).fit(frame, Y, qid=QID, sensitive_features=GROUP)
    assert ranker.raw_gaps_["proxy"] == pytest.approx(2)  # of two groups of one size: 1 / (1 / 2)


def test_categories_by_names_that_only_lightgbm_is_told():
    codes = np.where(GROUP == "a", 1, RNG.choice([0, 2], 72))  # of no order
    told = {"feature_name": list("xyzc"), "categorical_feature": ["c"]}
    with pytest.warns(UserWarning, match="3 categories in 72 rows"):
        ranker = GapBoostingRanker(light()).fit(np.c_[X, codes], Y, qid=QID, sensitive_features=GROUP, **told)
    assert ranker.raw_gaps_[3] == pytest.approx(2)


@pytest.mark.parametrize("gap, largest", [("standardized", 2), ("ks", 1)])
def test_infinity_gives_a_group_away(gap, largest):
    column = np.where(GROUP == "a", np.inf, 0.0)
    ranker = GapBoostingRanker(light(), gap=gap).fit(np.c_[X, column, -column], Y, qid=QID, sensitive_features=GROUP)
    np.testing.assert_allclose(ranker.raw_gaps_[3:], largest)


def test_what_no_weight_of_columns_holds_is_warned_of_or_refused(tmp_path):
    (tmp_path / "splits.json").write_text('{"feature": 0, "threshold": 0.0}')
    fit = {"X": np.c_[X, PROXY], "y": Y, "qid": QID, "sensitive_features": GROUP}
    for model in (light(forcedsplits_filename=str(tmp_path / "splits.json")), cat(random_strength=1.0)):
        with pytest.warns(UserWarning, match="whatever their weight"):
            GapBoostingRanker(model).fit(**fit)
    with pytest.raises(ValueError, match="gblinear"):
        GapBoostingRanker(extreme(booster="gblinear", colsample_bynode=0.5)).fit(**fit)


def test_settings_of_xgboost_act_under_a_foreign_objective():
    model = extreme(feature_weights=[0, 1, 1], colsample_bynode=0.5)
    ranker = SenSTIRBoostingRanker(model, rho=0, random_state=0).fit(X, Y, qid=QID)
    assert set(ranker.estimator_.get_booster().get_score()) == {"f1", "f2"}
    with pytest.raises(ValueError, match="eval_metric is a function"):
        SenSTIRBoostingRanker(extreme(eval_metric=lambda y, s: 1.0), rho=0).fit(X, Y, qid=QID)


def test_weights_of_queries_follow_the_ids_in_their_index():
    weight = RNG.random(12)
    given = weight, pd.Series(weight).sample(frac=1, random_state=0)
    expected, found = (QueryRanker(extreme()).fit(X, Y, qid=QID, sample_weight=one).predict(X) for one in given)
    np.testing.assert_array_equal(found, expected)


def test_columns_of_one_name_are_told_apart_or_refused():
    table = audit(pd.DataFrame(X[:, :2], columns=["s", "s"]), None, Y, qid=QID)
    assert table["ndcg"].to_dict() == {name: ndcg_score(Y, X[:, k], qid=QID) for k, name in enumerate(["s", "s (2)"])}
    groups = pd.DataFrame(np.c_[GROUP, GROUP], columns=["g", "g"])
    with pytest.raises(ValueError, match="columns of one name"):
        exposure_by_group(X[:, 0], None, Y, qid=QID, sensitive_features=groups)


def test_what_would_be_lost_is_said(tmp_path):
    with pytest.raises(ValueError, match="whole numbers beyond"):
        ndcg_score([1, 0], np.array([2**53 + 1, 2**53]), qid=[0, 0])
    with pytest.raises(ValueError, match="eval_qid came without eval_set"):
        QueryRanker(light()).fit(X, Y, qid=QID, eval_qid=[QID])
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=Y, qid=QID, day=QID % 2)
    frame.to_parquet(tmp_path, partition_cols=["day"])
    with pytest.warns(UserWarning, match="'day', which are in no file"):
        assert read_ranking(tmp_path).feature_names == list("abc")
