"""The rankers: estimators around training, without mathematics of their own."""

from skfairrank.rankers._fair_pg import FairPGRanker
from skfairrank.rankers._path import SenSTIRPath, senstir_path
from skfairrank.rankers._plackett_luce import PlackettLuceRanker, RandomRanker
from skfairrank.rankers._senstir import SenSTIRRanker

__all__ = ["FairPGRanker", "PlackettLuceRanker", "RandomRanker", "SenSTIRPath", "SenSTIRRanker", "senstir_path"]
