"""scikit-learn estimators for individually fair learning to rank."""

from skfairrank._adapters import QueryRanker
from skfairrank._boosting import SenSTIRBoostingRanker as SenSTIRBoostingRanker
from skfairrank._gap_boosting import GapBoostingRanker as GapBoostingRanker
from skfairrank._path import SenSTIRPath, senstir_path
from skfairrank._rankers import FairPGRanker, PlackettLuceRanker, RandomRanker, SenSTIRRanker
from skfairrank._temperature import TemperatureRanker as TemperatureRanker
from skfairrank._workers import on_workers
from skfairrank.fair_metrics._subspace import SensitiveSubspaceMetric
from skfairrank.preprocessing import QueryScaler

# What `import *` brings. The three rankers named twice above need another one as an argument; they are imported by name.
__all__ = [
    "FairPGRanker",
    "PlackettLuceRanker",
    "QueryRanker",
    "QueryScaler",
    "RandomRanker",
    "SenSTIRPath",
    "SenSTIRRanker",
    "SensitiveSubspaceMetric",
    "on_workers",
    "senstir_path",
]
__version__ = "0.1.0"
