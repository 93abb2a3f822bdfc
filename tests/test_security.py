"""Models stored without pickle, as docs/security.md says: its list of types is enough, none of them is superfluous, and what is
loaded predicts the same bits."""

import ast
import importlib
import inspect
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
from _data import ROOT, public_names
from catboost import CatBoostRanker
from lightgbm import LGBMRanker
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from test_packaging import public_modules
from xgboost import XGBRanker

import skfairrank
from skfairrank import adversaries, fair_metrics, policies, scores, utilities
from skfairrank.adversaries import GivenHypotheticals
from skfairrank.hypotheticals import Hypotheticals
from skfairrank.postprocessing import DetConstSortRanker, ExposureLPRanker, FairScoreSmoother, FAStarRanker

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def listed(name):
    """A list of the page's Python blocks."""
    return ast.literal_eval(re.search(rf"^{name} = (\[.*?^\])", PAGE, re.MULTILINE | re.DOTALL).group(1))


OURS, THEIRS = listed("SKFAIRRANK"), listed("LIBRARIES")
rng = np.random.default_rng(0)
GROUP = np.tile([0, 1], 40)
X = pd.DataFrame(rng.normal(size=(80, 3)) + GROUP[:, None], columns=["maths", "prose", "years"])
Y, QID = np.tile([0.0, 1, 2, 1, 0, 2, 0, 1], 10), np.repeat(np.arange(10), 8)
SHORT = {"max_iter": 5, "random_state": 0}
LIGHTGBM = LGBMRanker(n_estimators=3, num_leaves=4, min_child_samples=5, n_jobs=1, verbose=-1)
XGBOOST = XGBRanker(n_estimators=3, max_depth=2, n_jobs=1)
CATBOOST = CatBoostRanker(iterations=3, thread_count=1, verbose=0, allow_writing_files=False)
MATRIX = np.diag([1.0, 0.5, 0.0])
GROUPS = fair_metrics.ComparableGroupsMetric().fit(X, comparable_groups=np.arange(80) // 4)
PAIRS = fair_metrics.ComparablePairsMetric().fit(np.stack([X[:40], X[40:]], axis=1), np.tile([0, 1], 20))


def plackett_luce(**settings):
    return skfairrank.PlackettLuceRanker(**SHORT, **settings)


def senstir(**settings):
    return skfairrank.SenSTIRRanker(**SHORT, **settings)


def adversary_of(kind):
    given = {"hypotheticals": Hypotheticals(directions=True)} if kind is adversaries.GivenHypotheticals else {}
    return senstir(adversary=kind(**given))


# What others derive from, and nobody fits.
ABSTRACT = {"Adversary", "GradientEstimator", "LinearFairMetric", "Score", "Utility"}


def estimators_of(module):
    """Its public classes with parameters, by name."""
    public = {name: getattr(module, name) for name in public_names(module)}
    return {
        name: value
        for name, value in public.items()
        if isinstance(value, type) and issubclass(value, BaseEstimator) and name not in ABSTRACT
    }


# Estimators by the type that they bring into a file; those of parts stand in a ranker.
ESTIMATORS = {
    "PlackettLuceRanker": plackett_luce(),
    "FairPGRanker": skfairrank.FairPGRanker(**SHORT),
    "SenSTIRRanker": senstir(),
    "RandomRanker": skfairrank.RandomRanker(random_state=0),
    "QueryRanker": skfairrank.QueryRanker(Ridge()),
    "GapBoostingRanker": skfairrank.GapBoostingRanker(LIGHTGBM),
    "SenSTIRBoostingRanker": skfairrank.SenSTIRBoostingRanker(LIGHTGBM, random_state=0),
    "AveragingRanker": skfairrank.AveragingRanker(Ridge(), hypotheticals=Hypotheticals(gaps=True)),
    "DistilledRanker": skfairrank.DistilledRanker(Ridge(), plackett_luce(), hypotheticals=Hypotheticals(gaps=True)),
    "TemperatureRanker": skfairrank.TemperatureRanker(plackett_luce(), max_ndcg_loss=0.01, cv=2, random_state=0),
    "QueryScaler": make_pipeline(skfairrank.QueryScaler(), plackett_luce()),
    "FairScoreSmoother": FairScoreSmoother(Ridge()),
    "FAStarRanker": FAStarRanker(Ridge(), protected=1, p=0.4),
    "DetConstSortRanker": DetConstSortRanker(Ridge(), proportions={0: 0.5, 1: 0.5}),
    "ExposureLPRanker": ExposureLPRanker(Ridge()),
    "SensitiveSubspaceMetric": senstir(metric=fair_metrics.SensitiveSubspaceMetric()),
    "MahalanobisMetric": senstir(metric=fair_metrics.MahalanobisMetric(MATRIX), adversary="ascent"),
    "ComparableGroupsMetric": senstir(metric=FrozenEstimator(GROUPS)),
    "ComparablePairsMetric": senstir(metric=FrozenEstimator(PAIRS)),
    "Hypotheticals": senstir(adversary=GivenHypotheticals(Hypotheticals(directions=True))),
    "MLPScore": plackett_luce(score_function="mlp"),
    "LinearScore": plackett_luce(score_function=scores.LinearScore()),
    **{name: adversary_of(kind) for name, kind in estimators_of(adversaries).items()},
    **{name: plackett_luce(gradient=kind()) for name, kind in estimators_of(policies).items()},
    **{name: plackett_luce(utility=kind()) for name, kind in estimators_of(utilities).items()},
    "LGBMRanker": skfairrank.QueryRanker(LIGHTGBM),
    "XGBRanker": skfairrank.QueryRanker(XGBOOST),
    "CatBoostRanker": skfairrank.QueryRanker(CATBOOST),
    "a model of XGBoost on our objective": skfairrank.SenSTIRBoostingRanker(XGBOOST, random_state=0),
}
#: By the user's own functions; the page says how.
OTHERWISE = {"FunctionScore"}


@pytest.fixture(scope="module")
def fitted():
    """All estimators, fitted."""
    with sklearn.config_context(enable_metadata_routing=True):
        return {
            name: estimator.fit(
                X, Y.astype(int), qid=QID, **({"sensitive_features": GROUP} if takes_groups(estimator) else {})
            )
            for name, estimator in ESTIMATORS.items()
        }


def takes_groups(estimator):
    return "sensitive_features" in inspect.signature(estimator.fit).parameters


def predictions(estimator):
    """Scores, of re-rankers those of the new lists."""
    told = {"qid": QID} if hasattr(estimator, "steps") else {}
    if type(estimator).__module__.startswith("skfairrank.postprocessing"):
        told = {"qid": QID, "sensitive_features": GROUP}
    with sklearn.config_context(enable_metadata_routing=True):
        return estimator.predict(X, **told)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_what_is_loaded_with_the_listed_types_predicts_the_same_bits(fitted, name):
    stored = skops.io.dumps(fitted[name])
    needed = skops.io.get_untrusted_types(data=stored)
    assert not set(needed) - {*OURS, *THEIRS}
    again = skops.io.loads(stored, trusted=needed)
    assert np.array_equal(predictions(again), predictions(fitted[name]))


def test_every_listed_type_is_needed(fitted):
    needed = {
        kind for estimator in fitted.values() for kind in skops.io.get_untrusted_types(data=skops.io.dumps(estimator))
    }
    assert needed == {*OURS, *THEIRS} and all(kind.startswith("skfairrank.") for kind in OURS)


def test_every_public_estimator_is_on_the_list():
    public = {
        name for module in public_modules() for name in estimators_of(importlib.import_module("skfairrank" + module))
    }
    assert public - OTHERWISE == {kind.rpartition(".")[2] for kind in OURS}


def test_functions_are_stored_by_their_name_and_lambdas_are_refused():
    ranker = senstir(adversary=GivenHypotheticals(mirrored)).fit(X, Y, qid=QID)
    stored = skops.io.dumps(ranker)
    assert f"{__name__}.mirrored" in skops.io.get_untrusted_types(data=stored)
    ranker = clone(ranker).set_params(adversary__hypotheticals=lambda X: -X).fit(X, Y, qid=QID)
    with pytest.raises(Exception, match="lambda"):
        skops.io.loads(skops.io.dumps(ranker), trusted=skops.io.get_untrusted_types(data=skops.io.dumps(ranker)))


def mirrored(X):
    return -X
