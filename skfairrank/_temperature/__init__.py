"""How decided a policy is: the temperature of any ranker, chosen on held-out queries."""

from skfairrank._temperature._ranker import TemperatureRanker

__all__ = ["TemperatureRanker"]
