"""Individually fair boosting: gradient-boosted trees of other libraries, grown on SenSTIR's objective."""

from skfairrank._boosting._senstir import SenSTIRBoostingRanker

__all__ = ["SenSTIRBoostingRanker"]
