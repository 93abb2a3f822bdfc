"""What a fair metric treats as sensitive, as a table for people."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

__all__ = ["MetricSummary"]


@dataclass(frozen=True)
class MetricSummary:
    """Directions and gaps by feature, and how much of the groups' difference the directions hold.

    Attributes
    ----------
    table : DataFrame
        A row for each feature; columns "direction 0 (attribute)", ..., and "gap", all in feature units.
    shares : dict of str to float
        Of each attribute, the share of the groups' squared difference that lies within the sensitive subspace.
    determining_columns : dict of str to list
        Of each attribute, the columns that alone determine it.
    """

    table: pd.DataFrame
    shares: dict
    determining_columns: dict

    @classmethod
    def of(cls, features, directions, names, gaps, shares, determining_columns) -> MetricSummary:
        columns = {f"direction {k} ({name})": row for k, (name, row) in enumerate(zip(names, directions, strict=True))}
        table = pd.DataFrame({**columns, "gap": gaps}, index=pd.Index(np.asarray(features), name="feature"))
        return cls(table, dict(shares), dict(determining_columns))

    @property
    def _sentences(self) -> list[str]:
        held = [
            f"The directions hold {share:.0%} of how the groups of {name} differ."
            for name, share in self.shares.items()
            if not np.isnan(share)
        ]
        determined = [
            f"Columns that alone determine {name}: {', '.join(map(str, columns))}. Name them in sensitive_columns."
            for name, columns in self.determining_columns.items()
            if columns
        ]
        return held + determined

    def __repr__(self) -> str:
        return "\n".join([self.table.to_string(float_format=lambda x: f"{x:.3g}"), *self._sentences])

    def _repr_html_(self) -> str:
        table = self.table.to_html(float_format=lambda x: f"{x:.3g}")
        return table + "".join(f"<p>{escape(sentence)}</p>" for sentence in self._sentences)
