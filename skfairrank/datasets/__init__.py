"""Data sets: the paper's generators, readers of the files that it uses, and two more whose twins are known."""

from skfairrank.datasets._census_income import load_census_income
from skfairrank.datasets._flips import flip_columns, flip_sex
from skfairrank.datasets._generators import make_biased_ranking, make_hiring_ranking
from skfairrank.datasets._german_credit import (
    encode_german_credit,
    fetch_german_credit,
    load_german_credit,
    make_credit_ranking,
)
from skfairrank.datasets._letor import load_letor, make_mslr_ranking
from skfairrank.datasets._trec import load_query_sizes, load_trec_run

__all__ = [
    "encode_german_credit",
    "fetch_german_credit",
    "flip_columns",
    "flip_sex",
    "load_census_income",
    "load_german_credit",
    "load_letor",
    "load_query_sizes",
    "load_trec_run",
    "make_biased_ranking",
    "make_credit_ranking",
    "make_hiring_ranking",
    "make_mslr_ranking",
]
