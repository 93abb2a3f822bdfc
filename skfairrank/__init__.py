"""scikit-learn estimators for individually fair learning to rank."""

from skfairrank._adapters import QueryRanker
from skfairrank._boosting import SenSTIRBoostingRanker
from skfairrank._gap_boosting import GapBoostingRanker
from skfairrank._path import SenSTIRPath, senstir_path
from skfairrank._rankers import FairPGRanker, PlackettLuceRanker, RandomRanker, SenSTIRRanker
from skfairrank._temperature import TemperatureRanker
from skfairrank.fair_metrics._subspace import SensitiveSubspaceMetric
from skfairrank.preprocessing import QueryScaler

__all__ = [
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
    "senstir_path",
]
__version__ = "0.1.0"
