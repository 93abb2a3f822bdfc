"""A search with several scorers, scored itself: scikit-learn hands its `score` the metadata of all of them unsorted."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.utils.fixes import parse_version

from skfairrank import SenSTIRRanker
from skfairrank.metrics import (
    group_exposure_disparity,
    neg_group_exposure_disparity_scorer,
    stochastic_ndcg_score,
    stochastic_ndcg_scorer,
)
from skfairrank.model_selection import QueryKFold

BY_SEX = neg_group_exposure_disparity_scorer.set_score_request(sensitive_features="sex")
PLAIN = {"ndcg": stochastic_ndcg_scorer, "gap": neg_group_exposure_disparity_scorer}
ALIASED = {"ndcg": stochastic_ndcg_scorer, "gap": BY_SEX}
BOTH = {"by_sex": BY_SEX, "by_group": neg_group_exposure_disparity_scorer}


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    return {
        "X": rng.normal(size=(60, 3)),
        "y": rng.integers(0, 3, 60).astype(float),
        "qid": np.repeat(np.arange(12), 5),
        "group": rng.integers(0, 2, 60),
        "sex": rng.integers(0, 2, 60),
    }


def search_over(scoring, refit):
    ranker = SenSTIRRanker(max_iter=10, random_state=0)
    return GridSearchCV(ranker, {"rho": [0, 0.1]}, cv=QueryKFold(2), scoring=scoring, refit=refit, error_score="raise")


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="before scikit-learn 1.8 a search hands no metadata to its own scorers when it is scored by another",
)
@pytest.mark.parametrize(
    "scoring, refit",
    [(PLAIN, "ndcg"), (PLAIN, "gap"), (ALIASED, "ndcg"), (ALIASED, "gap"), (BOTH, "by_sex"), (BOTH, "by_group")],
)
def test_a_search_scores_as_its_refit_metric(task, scoring, refit):
    X, y, qid, group, sex = task.values()
    names = {"sex": sex} if scoring is ALIASED else {"sensitive_features": group}
    if scoring is BOTH:
        names["sex"] = sex
    with sklearn.config_context(enable_metadata_routing=True):
        search = search_over(scoring, refit).fit(X, y, qid=qid, **{"sensitive_features": group, **names})
        got = search.score(X, y, qid=qid, **names)
        outer = cross_validate(
            search_over(scoring, refit),
            X,
            y,
            cv=QueryKFold(2),
            params={"qid": qid, "sensitive_features": group, **names},
            error_score="raise",
        )
    s = search.predict(X)
    settings = {"qid": qid, "n_samples": 100, "random_state": 0}
    if refit == "ndcg":
        assert got == stochastic_ndcg_score(y, s, **settings)
    else:
        attribute = sex if refit == "by_sex" or scoring is ALIASED else group
        assert got == -group_exposure_disparity(y, s, sensitive_features=attribute, **settings)
    assert np.isfinite(outer["test_score"]).all()


def test_without_routing_a_scorer_refuses_what_it_does_not_take(task):
    X, y, qid, group, _ = task.values()
    ranker = SenSTIRRanker(max_iter=5, random_state=0).fit(X, y, qid=qid, sensitive_features=group)
    with pytest.raises(TypeError, match="takes qid, query_weight, sensitive_features, not X_hypothetical"):
        stochastic_ndcg_scorer(ranker, X, y, qid=qid, X_hypothetical=X)
