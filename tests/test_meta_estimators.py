"""What scikit-learn's meta-estimators do to queries: each line of docs/meta_estimators.md, with a ranker that keeps records."""

import re
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import AdaBoostRegressor, BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from skfairrank import QueryScaler
from skfairrank.metrics import make_ranking_scorer, ndcg_score, ndcg_scorer
from skfairrank.model_selection import QueryKFold
from skfairrank.rankers._plackett_luce import RankingMixin

PAGE = Path(__file__).parent.parent / "docs" / "meta_estimators.md"
# Before 1.8 a search withholds qid from the `score` of a pipeline or search (docs/model_selection.md): a scorer gets it.
SKLEARN = parse_version(sklearn.__version__)
BY_DEFAULT = None if parse_version("1.8") <= SKLEARN else ndcg_scorer
LENIENT = make_ranking_scorer(ndcg_score, replace_undefined_by=0.0)  # what is left of a query may have nothing relevant
SIZE = 5

seen = []


def record(qid):
    seen.append("none" if qid is None else set(np.unique(qid, return_counts=True)[1].tolist()))


class Recorder(RankingMixin, BaseEstimator):
    """A ranker by the first column that records the sizes of the queries that it is fitted and scored on."""

    def __init__(self, steps=1, kind=0):
        self.steps = steps
        self.kind = kind

    def fit(self, X, y, *, qid=None, sensitive_features=None):
        record(qid)
        self.n_queries_ = 1 if qid is None else len(set(qid))
        self.n_features_in_ = X.shape[1]
        self.coef_ = np.arange(X.shape[1]) + 1.0
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0]

    def score(self, X, y, *, qid=None, sample_weight=None):
        record(qid)
        return super().score(X, y, qid=qid, sample_weight=sample_weight)


rng = np.random.default_rng(0)
N_ROWS = 12 * SIZE
X = rng.normal(size=(N_ROWS, 3))
qid = rng.permutation(np.repeat(np.arange(12), SIZE))
y = rng.integers(0, 4, N_ROWS).astype(float)
y[np.unique(qid, return_index=True)[1]] = 3.5  # something relevant in every query
Y = np.column_stack([y, y])
cv = QueryKFold(3)
how = {"cv": cv, "params": {"qid": qid}}
steps = {"kind": [0, 1, 2, 3]}


def fitted():
    return Recorder().fit(X, y, qid=qid)


def scored(estimator, **by):
    return cross_validate(estimator, X, y, **how, error_score="raise", **by)


def column_transformer():
    return ColumnTransformer([("scale", StandardScaler(), [0, 1])], remainder="passthrough")


# Each line of the page: its verdict and what proves it.
LINES = {
    "`Pipeline`": [
        lambda: make_pipeline(StandardScaler(), Recorder()).fit(X, y, qid=qid).score(X, y, qid=qid),
        lambda: make_pipeline(QueryScaler(), Recorder()).fit(X, y, qid=qid).predict(X, qid=qid),
    ],
    "`ColumnTransformer`, `FeatureUnion`": [
        lambda: make_pipeline(column_transformer(), Recorder()).fit(X, y, qid=qid).score(X, y, qid=qid),
        lambda: (
            make_pipeline(FeatureUnion([("a", StandardScaler()), ("b", QueryScaler())]), Recorder())
            .fit(X, y, qid=qid)
            .score(X, y, qid=qid)
        ),
    ],
    "`GridSearchCV`, `RandomizedSearchCV`": [
        lambda: GridSearchCV(Recorder(), steps, cv=cv, error_score="raise").fit(X, y, qid=qid).score(X, y, qid=qid),
        lambda: RandomizedSearchCV(Recorder(), steps, n_iter=2, cv=cv, error_score="raise").fit(X, y, qid=qid),
    ],
    "`GridSearchCV` with `cv=5`": [lambda: GridSearchCV(Recorder(), steps, cv=5, scoring=LENIENT).fit(X, y, qid=qid)],
    "`GridSearchCV` with `cv=GroupKFold(5)`": [
        lambda: GridSearchCV(
            Recorder(), steps, cv=GroupKFold(5).set_split_request(groups=True), error_score="raise"
        ).fit(X, y, qid=qid, groups=qid)
    ],
    "`HalvingGridSearchCV`, `HalvingRandomSearchCV`": [
        lambda kind=kind: kind(
            Recorder(), steps, resource="steps", max_resources=4, cv=cv, error_score="raise", random_state=0
        ).fit(X, y, qid=qid)
        for kind in (HalvingGridSearchCV, HalvingRandomSearchCV)
    ],
    '`HalvingGridSearchCV` with `resource="n_samples"`': [
        lambda: HalvingGridSearchCV(
            Recorder(), steps, min_resources=20, cv=QueryKFold(2), scoring=LENIENT, random_state=0
        ).fit(X, y, qid=qid)
    ],
    "`cross_validate`, `cross_val_score`, `validation_curve`, `permutation_test_score`": [
        lambda: scored(Recorder(), return_train_score=True),
        lambda: cross_val_score(Recorder(), X, y, **how, error_score="raise"),
        lambda: validation_curve(Recorder(), X, y, **how, param_name="kind", param_range=[0, 1], error_score="raise"),
        lambda: permutation_test_score(Recorder(), X, y, **how, n_permutations=2),
    ],
    "`cross_val_predict`": [lambda: cross_val_predict(Recorder(), X, y, **how)],
    "a search inside `cross_validate`": [
        lambda: scored(GridSearchCV(Recorder(), steps, cv=QueryKFold(2), error_score="raise"), scoring=BY_DEFAULT)
    ],
    "`learning_curve`": [lambda: learning_curve(Recorder(), X, y, **how, scoring=LENIENT)],
    "`RFE`, `SelectFromModel`": [
        lambda: RFE(Recorder(), n_features_to_select=1).fit(X, y, qid=qid),
        lambda: SelectFromModel(Recorder()).fit(X, y, qid=qid),
    ],
    "`SelectFromModel` as a step of a pipeline": [
        lambda: make_pipeline(SelectFromModel(Recorder()), Recorder()).fit(X, y, qid=qid).score(X, y, qid=qid),
    ],
    "`RFECV`": [lambda: RFECV(Recorder(), cv=cv, scoring=ndcg_scorer).fit(X, y, qid=qid)],
    "`SequentialFeatureSelector`": [
        lambda: SequentialFeatureSelector(Recorder(), n_features_to_select=1, cv=cv).fit(X, y, qid=qid)
    ],
    "`BaggingRegressor`": [lambda: BaggingRegressor(Recorder(), n_estimators=2, random_state=0).fit(X, y, qid=qid)],
    "`BaggingRegressor` with `bootstrap=False`": [
        lambda: ndcg_scorer(
            BaggingRegressor(Recorder(), n_estimators=2, bootstrap=False, max_features=2, random_state=0).fit(
                X, y, qid=qid
            ),
            X,
            y,
            qid=qid,
        )
    ],
    "`TransformedTargetRegressor`": [
        lambda: scored(
            TransformedTargetRegressor(Recorder(), func=np.log1p, inverse_func=np.expm1), scoring=ndcg_scorer
        )
    ],
    "`MultiOutputRegressor`, `RegressorChain`": [
        lambda: MultiOutputRegressor(Recorder()).fit(X, Y, qid=qid).predict(X),
        lambda: RegressorChain(Recorder()).fit(X, Y, qid=qid).predict(X),
    ],
    "`RANSACRegressor`": [
        lambda: RANSACRegressor(Recorder(), min_samples=20, random_state=0, residual_threshold=9.0).fit(X, y, qid=qid)
    ],
    "`AdaBoostRegressor`": [lambda: AdaBoostRegressor(Recorder(), n_estimators=2).fit(X, y, qid=qid)],
    "`VotingRegressor`, `StackingRegressor`": [
        lambda: VotingRegressor([("a", Recorder())]).fit(X, y, qid=qid),
        lambda: StackingRegressor([("a", Recorder())], cv=cv).fit(X, y, qid=qid),
    ],
    "`FrozenEstimator`": [lambda: scored(FrozenEstimator(fitted()), scoring=ndcg_scorer)],
    "`permutation_importance`": [lambda: permutation_importance(fitted(), X, y)],
    "`permutation_importance` with a scorer that knows `qid`": [
        lambda: permutation_importance(
            fitted(), X, y, scoring=lambda ranker, X, y: ndcg_scorer(ranker, X, y, qid=qid), random_state=0
        )
    ],
    "`partial_dependence`": [lambda: partial_dependence(fitted(), X, [0])],
    "`CalibratedClassifierCV`, `TunedThresholdClassifierCV`": [
        lambda: CalibratedClassifierCV(Recorder()).fit(X, y > 1, qid=qid),
        lambda: TunedThresholdClassifierCV(Recorder()).fit(X, y > 1, qid=qid),
    ],
}


def lines_of_the_page():
    """First two columns of the table."""
    rows = re.findall(r"^\| (.+?) \| (\w+) \|", PAGE.read_text(), flags=re.MULTILINE)
    return {line: verdict for line, verdict in rows if verdict != "queries"}


@pytest.fixture(autouse=True)
def routing():
    seen.clear()
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_every_line_of_the_page_is_proven():
    page = lines_of_the_page()
    assert page.keys() == LINES.keys()
    assert set(page.values()) == {"whole", "cut", "refused"}


@pytest.mark.filterwarnings("ignore:ndcg_score measures nothing here")  # what is left of queries
@pytest.mark.parametrize("line, k", [(line, k) for line in LINES for k in range(len(LINES[line]))])
def test_queries_are_kept_whole_or_cut_or_refused_as_the_page_says(line, k):
    verdict, run = lines_of_the_page()[line], LINES[line][k]
    if line == "`SelectFromModel` as a step of a pipeline" and SKLEARN < parse_version("1.9"):
        verdict = "forgotten"
    if verdict == "refused":
        with pytest.raises((TypeError, ValueError)):
            run()
    elif verdict == "forgotten":
        run()
        assert seen[0] == "none"  # then a ranker of this package warns
    elif verdict == "whole":
        run()
        assert seen and all(sizes == {SIZE} for sizes in seen), seen
    else:
        run()
        assert any(sizes != {SIZE} for sizes in seen), seen
