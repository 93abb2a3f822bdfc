"""Model selection that keeps queries whole: splitters, a learning curve, and a picker for searches with two scorers."""

from skfairrank.model_selection._learning_curve import query_learning_curve
from skfairrank.model_selection._pick import best_under
from skfairrank.model_selection._split import (
    LeaveOneQueryOut,
    QueryKFold,
    QueryShuffleSplit,
    RepeatedQueryKFold,
    train_test_query_split,
)

__all__ = [
    "LeaveOneQueryOut",
    "QueryKFold",
    "QueryShuffleSplit",
    "RepeatedQueryKFold",
    "best_under",
    "query_learning_curve",
    "train_test_query_split",
]
