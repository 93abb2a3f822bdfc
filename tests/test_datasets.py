"""The synthetic task, and the helpers that all data sets share."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import scipy.stats
from _data import shared_data

from skfairrank.datasets import flip_columns, flip_sex, make_biased_ranking

# ---------------------------------------------------------------------------------------------- make_biased_ranking


def test_biased_ranking_follows_its_definition():
    task = make_biased_ranking(200, 7, random_state=3)
    z = task.uncorrupted_data
    np.testing.assert_array_equal(task.target, np.minimum(z[:, 0] + z[:, 1], 5))
    for row, (x, majority) in enumerate(zip(task.data, task.sensitive_features, strict=True)):
        assert x.tolist() == [z[row, 0], z[row, 1] if majority else 0]
    assert task.data.shape == (1400, 2)
    assert task.sensitive_features.dtype == bool
    assert np.bincount(task.qid).tolist() == [7] * 200 and (np.diff(task.qid) >= 0).all()
    assert (task.target == 5).any(), "clipping is not exercised"


def test_biased_ranking_draws_uniform_features_and_independent_groups():
    task = make_biased_ranking(2000, 10, random_state=0)
    for z in task.uncorrupted_data.T:
        assert scipy.stats.kstest(z, scipy.stats.uniform(0, 3).cdf).pvalue > 1e-3
    n, p = len(task.target), 0.8
    assert abs(task.sensitive_features.mean() - p) < 4 * math.sqrt(p * (1 - p) / n)
    # Independent items: the number of majority items of a query is binomial, not fixed at 8.
    counts = np.bincount(task.sensitive_features.reshape(2000, 10).sum(axis=1), minlength=11)[5:]
    expected = scipy.stats.binom.pmf(np.arange(5, 11), 10, p)
    assert scipy.stats.chisquare(counts, counts.sum() * expected / expected.sum()).pvalue > 1e-3


def test_biased_ranking_other_ranges():
    task = make_biased_ranking(50, feature_max=1, relevance_max=math.inf, majority_fraction=0, random_state=0)
    assert task.data[:, 0].max() <= 1 and (task.data[:, 1] == 0).all()
    np.testing.assert_array_equal(task.target, task.uncorrupted_data.sum(axis=1))
    assert make_biased_ranking(50, majority_fraction=1, random_state=0).sensitive_features.all()
    assert make_biased_ranking(np.int64(1), 1, random_state=0).data.shape == (1, 2)


def test_random_state_makes_data_reproducible_and_leaves_numpys_global_state_alone():
    before = np.random.get_state()[1].copy()
    one, same, other = (make_biased_ranking(5, random_state=seed) for seed in (7, np.random.default_rng(7), 8))
    np.testing.assert_array_equal(one.data, same.data)
    assert not np.array_equal(one.data, other.data)
    generator = np.random.default_rng(0)
    first, second = (make_biased_ranking(5, random_state=generator) for _ in range(2))
    assert not np.array_equal(first.data, second.data)
    make_biased_ranking(5)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_queries": 0}, "n_queries=0: give a whole number of at least 1"),
        ({"n_items": 0}, "n_items=0"),
        ({"majority_fraction": 1.1}, r"majority_fraction=1.1: give a number in \[0, 1\]"),
        ({"feature_max": 0}, "feature_max=0: give a number in"),
        ({"feature_max": math.inf}, "feature_max=inf"),
        ({"random_state": -1}, "random_state=-1"),
    ],
)
def test_biased_ranking_names_what_is_wrong(parameters, message):
    with pytest.raises(ValueError, match=message):
        make_biased_ranking(**parameters)


# ---------------------------------------------------------------------------------------------- flip_columns, flip_sex


def test_flip_columns_exchanges_values_and_is_its_own_inverse():
    X = np.array([[1.0, 5.5, 6.5, 0.0], [0.0, 7.5, 8.5, 1.0], [0.0, 9.5, 2.5, 0.0]])
    before = X.copy()
    flipped = flip_columns(X, (0, 3))
    np.testing.assert_array_equal(flipped, X[:, [3, 1, 2, 0]])
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(flip_columns(flipped, (3, 0)), X)
    np.testing.assert_array_equal(flip_columns(X, (0, -1)), flipped)


@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array])
def test_flip_columns_keeps_sparse_matrices_sparse(form):
    X = np.array([[1.0, 0, 5], [0, 1, 6]])
    flipped = flip_columns(form(X), (0, 1))
    assert scipy.sparse.issparse(flipped)
    np.testing.assert_array_equal(flipped.toarray(), [[0, 1, 5], [1, 0, 6]])


def people(**dtypes):
    """A frame with a one-hot pair "b", "c"."""
    return pd.DataFrame({"a": [7, 8], "b": [0, 1], "c": [1, 0]}, index=[9, 4]).astype(dtypes)


@pytest.mark.parametrize("dtypes", [{}, {"b": float}, {"b": bool, "c": np.int8}, {"b": "Int64"}, {"c": "boolean"}])
def test_flip_columns_keeps_names_order_and_dtypes_of_a_frame(dtypes):
    frame = people(**dtypes)
    for columns in (("b", "c"), (1, 2)):
        flipped = flip_columns(frame, columns)
        expected = frame.assign(b=[1, 0], c=[0, 1]).astype(frame.dtypes.to_dict())
        pd.testing.assert_frame_equal(flipped, expected)
    pd.testing.assert_frame_equal(frame, people(**dtypes))


@pytest.mark.parametrize("dtypes", [{}, {"b": float}, {"b": bool, "c": np.int8}])
@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_flip_columns_of_other_frames_gives_the_frame_that_came(library, dtypes):
    module = pytest.importorskip(library)
    frame = people(**dtypes).reset_index(drop=True)
    columns = {name: frame[name].to_numpy() for name in frame}
    given = module.DataFrame(columns) if library == "polars" else module.table(columns)
    for pair in (("b", "c"), (2, 1)):
        flipped = flip_columns(given, pair)
        assert type(flipped) is type(given)
        assert flipped.schema == given.schema
        for name, expected in {"a": [7, 8], "b": [1, 0], "c": [0, 1]}.items():
            np.testing.assert_array_equal(np.asarray(flipped[name]), expected)
    np.testing.assert_array_equal(np.asarray(given["b"]), [0, 1])


@pytest.mark.parametrize("prefix", ["", "cat__", "all__cat__"])
def test_flip_sex_finds_names_in_any_place_and_behind_a_prefix(prefix):
    """Third and fourth stand two other one-hot columns, which an exchange by position would hit."""
    columns = {
        "Age": [0.5, 0.7],
        f"{prefix}Sex_male": [1.0, 0.0],
        "Job": [3.0, 4.0],
        "Own": [1.0, 0.0],
        "Rent": [0.0, 1.0],
    }
    columns[f"{prefix}Sex_female"] = [0.0, 1.0]
    flipped = flip_sex(pd.DataFrame(columns))
    expected = columns | {f"{prefix}Sex_male": [0.0, 1.0], f"{prefix}Sex_female": [1.0, 0.0]}
    for name, values in expected.items():
        np.testing.assert_array_equal(np.asarray(flipped[name]), values)


def test_flip_sex_without_its_columns_is_an_error_that_lists_the_names():
    named = pd.DataFrame({name: [1.0, 0.0] for name in ("Age", "Amount", "Duration", "sex: female", "sex: male")})
    with pytest.raises(
        ValueError, match=r"none is 'Sex_female'. Its columns are 'Age', .*, 'sex: female', 'sex: male'"
    ):
        flip_sex(named)
    with pytest.raises(ValueError, match="none is 'female'"):
        flip_columns(named, ("female", "male"))  # no prefix: there is no __ before it
    two = pd.DataFrame({name: [1.0, 0.0] for name in ("a__Sex_female", "b__Sex_female", "Sex_male")})
    with pytest.raises(ValueError, match="several columns called 'Sex_female'"):
        flip_sex(two)


@pytest.mark.parametrize(
    "pair",
    [[[2.0, -2.0], [-0.5, 0.5]], [[0.3, 0.7], [1.0, 0.0]], [[1, 1], [1, 0]], [[np.nan, 1], [0, 1]], [["m", "f"]]],
    ids=["standardised", "shares", "both set", "missing", "strings"],
)
def test_columns_that_are_no_one_hot_pair_are_refused(pair):
    """An exchange of standardised columns would make people of neither sex: (2, -2) is one, (-.5, .5) the other."""
    X = np.hstack([np.zeros((len(pair), 3), dtype=object), np.array(pair, dtype=object)])
    kinds = [X, pd.DataFrame(X, columns=["a", "b", "c", "Sex_female", "Sex_male"])]
    if isinstance(pair[0][0], float):
        kinds += [X.astype(float), scipy.sparse.csr_array(X.astype(float))]
    for kind in kinds:
        with pytest.raises(ValueError, match=r"are no one-hot pair .*flip the rows first and scale them afterwards"):
            flip_sex(kind)


def test_flip_sex_finds_columns_without_names_by_position():
    X = np.array([[0.1, 0.2, 0.3, 1, 0, 7], [0.1, 0.2, 0.3, 0, 1, 8]])
    expected = X[:, [0, 1, 2, 4, 3, 5]]
    np.testing.assert_array_equal(flip_sex(X), expected)
    np.testing.assert_array_equal(flip_sex(X.tolist()), expected)


@pytest.mark.parametrize("columns", [(0, 0), (0, -2), (0,), (0, 1, 0), (0, 2), (0, "b"), 1, (0.0, 1), ()])
def test_flip_columns_needs_two_different_columns(columns):
    with pytest.raises(ValueError, match="columns="):
        flip_columns(np.eye(2), columns)


def test_flip_columns_rejects_one_dimension_and_ambiguous_names():
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        flip_columns([1, 2, 3], (0, 1))
    twice = pd.DataFrame(np.eye(3), columns=["a", "a", "b"])
    with pytest.raises(ValueError, match="several columns called 'a'"):
        flip_columns(twice, ("a", "b"))
    np.testing.assert_array_equal(flip_columns(twice, (0, 2)), np.eye(3)[:, [2, 1, 0]])
    numbered = pd.DataFrame(np.eye(3), columns=[10, 11, 12])
    np.testing.assert_array_equal(flip_columns(numbered, (10, 12)), np.eye(3)[:, [2, 1, 0]])


def test_biased_ranking_has_the_form_of_the_authors_data():
    """Their recorded arrays obey the same definition, and no statistical test tells the two apart."""
    with np.load(shared_data("senstir_synthetic.npz")) as recorded:
        X = np.concatenate([recorded["X_train"], recorded["X_test"]])
        y = np.concatenate([recorded["y_train"], recorded["y_test"]])
        majority = np.concatenate([recorded["majority_train"], recorded["majority_test"]])
        assert len(np.unique(recorded["qid_train"])) == 100
    np.testing.assert_array_equal(y[majority], np.clip(X[majority].sum(axis=1), 0, 5))
    assert (X[~majority, 1] == 0).all()
    ours = make_biased_ranking(1000, random_state=1)
    assert scipy.stats.ks_2samp(y, ours.target).pvalue > 1e-3
    assert scipy.stats.ks_2samp(X[majority, 1], ours.data[ours.sensitive_features, 1]).pvalue > 1e-3
