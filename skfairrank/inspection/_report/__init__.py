"""A page on fitted rankers that stands alone: what was asked, what was found, and what the numbers do not say."""

from skfairrank.inspection._report._audit_report import AuditReport, audit_report

__all__ = ["AuditReport", "audit_report"]
