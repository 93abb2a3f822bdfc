"""Fair metrics: how far apart two items are when differences that must not matter are left out."""

from skfairrank.fair_metrics._summary import MetricSummary
from skfairrank.fair_metrics.subspace import SensitiveSubspaceMetric

__all__ = ["MetricSummary", "SensitiveSubspaceMetric"]
