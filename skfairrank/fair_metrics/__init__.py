"""Fair metrics: how far apart two items are when differences that must not matter are left out."""

from skfairrank.fair_metrics._subspace import SensitiveSubspaceMetric
from skfairrank.fair_metrics._summary import MetricSummary

__all__ = ["MetricSummary", "SensitiveSubspaceMetric"]
