"""The rankers: estimators around the core, without mathematics of their own."""

from skfairrank.rankers._base import PlackettLuceRanker
from skfairrank.rankers._fair_pg import FairPGRanker
from skfairrank.rankers._random import RandomRanker
from skfairrank.rankers._senstir import SenSTIRRanker

__all__ = ["FairPGRanker", "PlackettLuceRanker", "RandomRanker", "SenSTIRRanker"]
