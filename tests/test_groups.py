"""Groups as people have them: unknown for some rows, crossed, small."""

import numpy as np
import pandas as pd
import pytest

from skfairrank.inspection import audit, exposure_by_group
from skfairrank.metrics import (
    attention_weighted_rank_fairness,
    group_exposure_difference,
    group_exposure_disparity,
    group_ndkl,
    group_skew,
    make_ranking_scorer,
)

pytestmark = pytest.mark.once

# One query in the order of its ranks, a second without rows of known group, and a third with one group.
GROUPS, QID = np.array(["a", None, "b", "a", None, None, "a", None], dtype=object), [0, 0, 0, 0, 1, 1, 2, 2]
S, Y = [4.0, 3, 2, 1, 1, 2, 2, 1], [3.0, 3, 1, 1, 1, 2, 1, 1]
EXPOSURE = 1 / np.log2([2, 3, 4, 5])
KNOWN = {"qid": QID, "sensitive_features": GROUPS, "unknown_groups": "leave_out"}
MEAN_A = (EXPOSURE[0] + EXPOSURE[3]) / 2
OF_A = (EXPOSURE[0] + EXPOSURE[3]) / (EXPOSURE[0] + EXPOSURE[3] + EXPOSURE[2])


def kl(p, target=2 / 3):
    return sum(x * np.log(x / t) for x, t in ((p, target), (1 - p, 1 - target)) if x > 0)


def test_rows_of_unknown_group_have_ranks_and_count_in_no_group():
    """Values of the first query, from the definitions: shares are those among the rows of known group."""
    assert group_exposure_difference(S, **KNOWN) == pytest.approx(MEAN_A - EXPOSURE[2])
    disparity = group_exposure_disparity(
        Y, S, policy="deterministic", replace_undefined_by=np.nan, reduce=None, **KNOWN
    )
    np.testing.assert_allclose(disparity, [max(MEAN_A / 2 - EXPOSURE[2], 0), np.nan, np.nan])
    prefixes = [kl(1), kl(1), kl(1 / 2), kl(2 / 3)]
    assert group_ndkl(S, **KNOWN) == pytest.approx(np.average(prefixes, weights=EXPOSURE))
    assert group_skew(S, k=3, **KNOWN) == pytest.approx(np.log(1 / 2 / (1 / 3)))
    awrf = attention_weighted_rank_fairness(S, distance="absolute", reduce=None, **KNOWN)
    np.testing.assert_allclose(awrf, [1 - (OF_A - 2 / 3), np.nan, np.nan])
    told = {"target": {"a": 0.5, "b": 0.5}, "reduce": None}
    divergence = attention_weighted_rank_fairness(S, **told, **KNOWN)
    assert np.isnan(divergence).tolist() == [False, True, False]
    assert np.isnan(group_skew(np.negative(S), k=1, **told, **KNOWN)).tolist() == [False, True, True]
    scorer = make_ranking_scorer(group_exposure_difference, unknown_groups="leave_out")
    ranker = type("Known", (), {"predict": lambda self, X: X[:, 0]})()
    assert -scorer(ranker, np.c_[S], qid=QID, sensitive_features=GROUPS) == pytest.approx(MEAN_A - EXPOSURE[2])


def test_missing_groups_are_an_error_that_names_the_remedy():
    message = r'4 missing values.*in 8 rows.*unknown_groups="leave_out" in this metric'
    with pytest.raises(ValueError, match=message):
        group_exposure_difference(S, qid=QID, sensitive_features=GROUPS)
    with pytest.raises(ValueError, match=r"8 missing values.* in 8 rows: drop"):
        group_exposure_difference(S, qid=QID, sensitive_features=[None] * 8, unknown_groups="leave_out")
    with pytest.raises(ValueError, match="unknown_groups='drop': choose one of"):
        group_exposure_difference(S, qid=QID, sensitive_features=GROUPS, unknown_groups="drop")


def test_tables_count_the_unknown():
    table = audit(np.array(S), y=Y, qid=QID, sensitive_features=GROUPS, unknown_groups="leave_out")
    assert table["exposure_difference"].item() == pytest.approx(MEAN_A - EXPOSURE[2])
    both = pd.DataFrame({"first": GROUPS, "second": [*"xxyy", *"xxyx"]})
    table = exposure_by_group(np.array(S), y=Y, qid=QID, sensitive_features=both, crossed=True, k=2).droplevel(0)
    assert table["n_items"].to_dict() == {
        ("first", "a"): 3, ("first", "b"): 1, ("first", "unknown"): 4, ("second", "x"): 5, ("second", "y"): 3,
        ("first x second", "a, x"): 1, ("first x second", "a, y"): 2, ("first x second", "b, y"): 1,
        ("first x second", "unknown"): 4,
    }  # fmt: skip
    assert table.loc[("first", "unknown"), "share_of_top"] == pytest.approx((1 / 2 + 1 + 1 / 2) / 3)
