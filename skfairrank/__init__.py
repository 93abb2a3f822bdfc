"""scikit-learn estimators for individually fair learning to rank."""

from skfairrank.adapters import QueryRanker
from skfairrank.fair_metrics.subspace import SensitiveSubspaceMetric
from skfairrank.path import SenSTIRPath, senstir_path
from skfairrank.preprocessing import QueryScaler
from skfairrank.rankers import FairPGRanker, PlackettLuceRanker, RandomRanker, SenSTIRRanker

__all__ = [
    "FairPGRanker",
    "PlackettLuceRanker",
    "QueryRanker",
    "QueryScaler",
    "RandomRanker",
    "SenSTIRPath",
    "SenSTIRRanker",
    "SensitiveSubspaceMetric",
    "senstir_path",
]
__version__ = "0.1.0"
