"""Rankers around an estimator: boosted ones of other libraries, fair boosting, and the temperature of any ranker."""

from skfairrank.wrappers.boosting import SenSTIRBoostingRanker
from skfairrank.wrappers.gaps import GapBoostingRanker
from skfairrank.wrappers.query_ranker import QueryRanker
from skfairrank.wrappers.temperature import TemperatureRanker

__all__ = ["GapBoostingRanker", "QueryRanker", "SenSTIRBoostingRanker", "TemperatureRanker"]
