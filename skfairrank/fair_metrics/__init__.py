"""Fair metrics: how far apart two items are when differences that must not matter are left out."""

from skfairrank.fair_metrics._elicited import ComparableGroupsMetric, ComparablePairsMetric
from skfairrank.fair_metrics._linear import LinearFairMetric, MahalanobisMetric, check_fair_metric
from skfairrank.fair_metrics._subspace import SensitiveSubspaceMetric

__all__ = [
    "LinearFairMetric",
    "SensitiveSubspaceMetric",
    "MahalanobisMetric",
    "ComparableGroupsMetric",
    "ComparablePairsMetric",
    "check_fair_metric",
]
