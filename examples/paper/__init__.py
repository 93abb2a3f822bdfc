"""The experiments of Bower et al. (2021): their tasks and hyperparameters, what the authors' program recorded, and comparisons.

The scripts beside this folder import it. `make demo` is ``python -m examples.paper.demo``.
"""

from .pictures import draw_contours, draw_tradeoff, unlike_pair
from .systems import (
    COLUMNS,
    MEASURES,
    compare,
    make_systems,
    markdown,
    means_of,
    name_of,
    plus_minus,
    run_systems,
    summarize,
)
from .tasks import (
    GERMAN_FILES,
    HYPERPARAMETERS,
    RECORDED,
    Experiment,
    Side,
    data_folder,
    german_credit_experiment,
    german_credit_people,
    recorded_experiment,
    synthetic_experiment,
)

__all__ = [
    "COLUMNS",
    "GERMAN_FILES",
    "HYPERPARAMETERS",
    "MEASURES",
    "RECORDED",
    "Experiment",
    "Side",
    "compare",
    "data_folder",
    "draw_contours",
    "draw_tradeoff",
    "german_credit_experiment",
    "german_credit_people",
    "make_systems",
    "markdown",
    "means_of",
    "name_of",
    "plus_minus",
    "recorded_experiment",
    "run_systems",
    "summarize",
    "synthetic_experiment",
    "unlike_pair",
]
