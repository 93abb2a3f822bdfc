"""The experiments of Bower et al. (2021): their tasks and hyperparameters, what the authors' program recorded, and comparisons.

The demo, the examples and the page of results are made of these.
"""

from skfairrank.experiments._comparison import compare, summarize
from skfairrank.experiments._paper import HYPERPARAMETERS, RECORDED
from skfairrank.experiments._pictures import draw_contours, draw_tradeoff, unlike_pair
from skfairrank.experiments._tasks import (
    Experiment,
    Side,
    data_folder,
    german_credit_experiment,
    german_credit_people,
    recorded_experiment,
    synthetic_experiment,
)

__all__ = [
    "HYPERPARAMETERS",
    "RECORDED",
    "Experiment",
    "Side",
    "compare",
    "data_folder",
    "draw_contours",
    "draw_tradeoff",
    "german_credit_experiment",
    "german_credit_people",
    "recorded_experiment",
    "summarize",
    "synthetic_experiment",
    "unlike_pair",
]
