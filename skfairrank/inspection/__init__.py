"""What a fitted ranker does: hypothetical queries, stability of rankings, audits, and plots."""

from skfairrank.inspection._audit import audit, exposure_by_group, gaps_under_wrong_labels
from skfairrank.inspection._certificate import FairnessCertificate, fairness_certificate
from skfairrank.inspection._confidence import generalization_bound, upper_confidence_bound
from skfairrank.inspection._displays import (
    CertificateDisplay,
    PathDisplay,
    SensitiveDirectionsDisplay,
    TemperatureDisplay,
    TrainingHistoryDisplay,
)
from skfairrank.inspection._figures import RankDisplacementDisplay, ScoreContourDisplay, TradeoffDisplay
from skfairrank.inspection._impact import impact_ratios
from skfairrank.inspection._invariance import invariance_regularizer
from skfairrank.inspection._leakage import group_leakage
from skfairrank.inspection._nearest import NearestQueries, nearest_queries
from skfairrank.inspection._order_changes import rank_displacement
from skfairrank.inspection._report import AuditReport, audit_report

__all__ = [
    "AuditReport",
    "CertificateDisplay",
    "FairnessCertificate",
    "NearestQueries",
    "PathDisplay",
    "RankDisplacementDisplay",
    "ScoreContourDisplay",
    "SensitiveDirectionsDisplay",
    "TemperatureDisplay",
    "TradeoffDisplay",
    "TrainingHistoryDisplay",
    "audit",
    "audit_report",
    "exposure_by_group",
    "fairness_certificate",
    "gaps_under_wrong_labels",
    "generalization_bound",
    "group_leakage",
    "impact_ratios",
    "invariance_regularizer",
    "nearest_queries",
    "rank_displacement",
    "upper_confidence_bound",
]
