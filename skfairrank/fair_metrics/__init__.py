"""Fair metrics: how far apart two items are when differences that must not matter are left out."""

from skfairrank.fair_metrics._base import LinearFairMetric
from skfairrank.fair_metrics._comparable_groups import ComparableGroupsMetric
from skfairrank.fair_metrics._comparable_pairs import ComparablePairsMetric
from skfairrank.fair_metrics._fitting import check_fair_metric
from skfairrank.fair_metrics._mahalanobis import MahalanobisMetric
from skfairrank.fair_metrics._subspace import SensitiveSubspaceMetric
from skfairrank.fair_metrics._summary import MetricSummary

__all__ = [
    "LinearFairMetric",
    "SensitiveSubspaceMetric",
    "MahalanobisMetric",
    "ComparableGroupsMetric",
    "ComparablePairsMetric",
    "MetricSummary",
    "check_fair_metric",
]
