"""scikit-learn estimators for individually fair learning to rank."""

from skfairrank.fair_metrics._subspace import SensitiveSubspaceMetric
from skfairrank.preprocessing import QueryScaler
from skfairrank.rankers import FairPGRanker, PlackettLuceRanker, RandomRanker, SenSTIRPath, SenSTIRRanker, senstir_path
from skfairrank.wrappers import (
    AveragingRanker,
    DistilledRanker,
    GapBoostingRanker,
    QueryRanker,
    SenSTIRBoostingRanker,
    TemperatureRanker,
)
from skfairrank.wrappers._workers import on_workers

__all__ = [
    "AveragingRanker",
    "DistilledRanker",
    "FairPGRanker",
    "GapBoostingRanker",
    "PlackettLuceRanker",
    "QueryRanker",
    "QueryScaler",
    "RandomRanker",
    "SenSTIRBoostingRanker",
    "SenSTIRPath",
    "SenSTIRRanker",
    "SensitiveSubspaceMetric",
    "TemperatureRanker",
    "on_workers",
    "senstir_path",
]
__version__ = "0.1.0"
