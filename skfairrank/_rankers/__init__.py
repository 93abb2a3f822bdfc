"""The rankers: estimators around the core, without mathematics of their own."""

from skfairrank._rankers._base import PlackettLuceRanker
from skfairrank._rankers._fair_pg import FairPGRanker
from skfairrank._rankers._random import RandomRanker
from skfairrank._rankers._senstir import SenSTIRRanker

__all__ = ["FairPGRanker", "PlackettLuceRanker", "RandomRanker", "SenSTIRRanker"]
