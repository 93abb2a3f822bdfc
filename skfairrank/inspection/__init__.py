"""What a fitted ranker does: hypothetical queries, stability of rankings, audits, and plots."""

from skfairrank.inspection._audit import audit
from skfairrank.inspection._directions import SensitiveDirectionsDisplay
from skfairrank.inspection._displacement import rank_displacement
from skfairrank.inspection._displacement_display import RankDisplacementDisplay
from skfairrank.inspection._history import TrainingHistoryDisplay
from skfairrank.inspection._invariance import invariance_regularizer
from skfairrank.inspection._nearest import NearestQueries, nearest_queries
from skfairrank.inspection._path import PathDisplay
from skfairrank.inspection._score_contours import ScoreContourDisplay
from skfairrank.inspection._temperature_display import TemperatureDisplay
from skfairrank.inspection._tradeoff import TradeoffDisplay

__all__ = [
    "NearestQueries",
    "PathDisplay",
    "RankDisplacementDisplay",
    "ScoreContourDisplay",
    "SensitiveDirectionsDisplay",
    "TemperatureDisplay",
    "TradeoffDisplay",
    "TrainingHistoryDisplay",
    "audit",
    "invariance_regularizer",
    "nearest_queries",
    "rank_displacement",
]
