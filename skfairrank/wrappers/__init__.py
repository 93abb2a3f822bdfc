"""Rankers around an estimator: boosted ones of other libraries, fair boosting, and the temperature of any ranker."""

from skfairrank.wrappers._averaging import AveragingRanker
from skfairrank.wrappers._boosting import SenSTIRBoostingRanker
from skfairrank.wrappers._distilled import DistilledRanker
from skfairrank.wrappers._gaps import GapBoostingRanker
from skfairrank.wrappers._query_ranker import QueryRanker
from skfairrank.wrappers._temperature import TemperatureRanker

__all__ = [
    "AveragingRanker",
    "DistilledRanker",
    "GapBoostingRanker",
    "QueryRanker",
    "SenSTIRBoostingRanker",
    "TemperatureRanker",
]
