"""Candidate rows: what each source gives, by its definition, and what is refused, with its name."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from skfairrank import SensitiveSubspaceMetric
from skfairrank.fair_metrics import MahalanobisMetric
from skfairrank.fair_metrics._distances import distances_of_rows
from skfairrank.hypotheticals import Hypotheticals, check_hypotheticals

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1.0, 10.0, 0.1]
GROUP = np.arange(40) % 2
X[:, 0] += GROUP
V = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, -0.5]])
FRAME = pd.DataFrame(
    {
        "age": X[:, 0].astype(np.float32),
        "sex": pd.Categorical(np.where(GROUP, "f", "m")),
        "job": np.where(X[:, 1] > 0, "none", "cook"),
        "income": np.where(X[:, 2] > 0, np.nan, 1.0),
        "children": np.arange(40),
    },
    index=np.arange(40)[::-1] * 3,
)


def flip(rows):
    """In place, on purpose."""
    rows["sex"] = rows["sex"].map({"f": "m", "m": "f"})
    return rows


def double(rows):
    return 2 * rows


def tables(hypotheticals, rows, *args, **fit):
    return dict(hypotheticals.fit(rows, **fit).candidates(rows, *args))


# Functions


def test_functions_get_a_copy_of_the_rows_as_they_are():
    seen = []

    def look(rows):
        seen.append(rows.copy())
        return rows

    before = FRAME.copy()
    found = tables(Hypotheticals([flip, look]), FRAME)
    pd.testing.assert_frame_equal(FRAME, before)
    pd.testing.assert_frame_equal(seen[0], FRAME)
    assert list(found) == ["flip", "look"]
    expected = FRAME.assign(sex=pd.Categorical(np.where(GROUP, "m", "f"), categories=["f", "m"]))
    pd.testing.assert_frame_equal(found["flip"], expected)
    assert found["flip"]["sex"].cat.codes.tolist() == (1 - FRAME["sex"].cat.codes).tolist()


@pytest.mark.parametrize(
    "function, error, message",
    [
        (lambda rows: rows[:-1], ValueError, r"shape \(39, 5\).*shape \(40, 5\)"),
        (lambda rows: rows.rename(columns={"age": "years"}), ValueError, "'years'"),
        (lambda rows: rows.sort_index(), ValueError, "another order"),
        (lambda rows: rows.to_numpy(), TypeError, "ndarray, and X is a DataFrame"),
        (lambda rows: rows.assign(sex="d"), ValueError, r"'d' in column 'sex'.*\['f', 'm'\]"),
        (lambda rows: rows.assign(job=1.0), TypeError, "column 'job'"),
        (lambda rows: rows.assign(children=rows["children"].where(rows["children"] != 7)), ValueError, "row 7 is"),
        (lambda rows: rows.assign(job=None), ValueError, "40 missing values in column 'job'"),
        (lambda rows: rows.assign(age=np.inf), ValueError, "infinite values in column 'age'"),
    ],
)
def test_what_a_function_may_not_return(function, error, message):
    hypotheticals = Hypotheticals({"flip": flip, "mine": function})
    with pytest.raises(error, match=f"'mine'(.|\n)*{message}"):
        tables(hypotheticals, FRAME)
    given = FRAME if (given := function(FRAME.copy())) is None else given
    if given is not FRAME:  # the same holds for rows that are passed
        with pytest.raises(error, match=message):
            tables(Hypotheticals(), FRAME, {"mine": given})


def test_values_may_be_missing_where_training_rows_miss_some():
    hypotheticals = Hypotheticals(lambda rows: rows.assign(income=np.nan)).fit(FRAME)
    complete = FRAME[FRAME["income"].notna()]
    assert dict(hypotheticals.candidates(complete))["<lambda>"]["income"].isna().all()


def test_an_error_within_a_function_names_it():
    with pytest.raises(ValueError, match=r"'mine' got X.*columns \['age', 'sex', .*'children'\].*'gender'"):
        tables(Hypotheticals({"mine": lambda rows: rows["gender"]}), FRAME)
    with pytest.raises(ValueError, match=r"'mine' got X as ndarray .*no column names.*asked for"):
        tables(Hypotheticals({"mine": lambda rows: rows["gender"]}), X)
    with pytest.raises(ZeroDivisionError) as caught:
        tables(Hypotheticals({"mine": lambda rows: 1 / 0}), X)
    assert "'mine'" in caught.value.__notes__[0]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_in_another_order_are_ordered_by_name(library):
    frame = FRAME[["age", "job", "children"]].reset_index(drop=True)
    back = frame.iloc[:, ::-1].assign(age=frame["age"] + 1)
    if library == "polars":
        frame, back = (pytest.importorskip("polars").from_pandas(table) for table in (frame, back))
    elif library == "pyarrow":
        pa = pytest.importorskip("pyarrow")
        frame, back = (pa.Table.from_pandas(table, preserve_index=False) for table in (frame, back))
    for found in (tables(Hypotheticals(), frame, back), tables(Hypotheticals(lambda rows: back), frame)):
        ((_, table),) = found.items()
        table = table if library == "pandas" else table.to_pandas()
        assert list(table) == ["age", "job", "children"]
        assert table["age"].tolist() == (FRAME["age"] + 1).tolist()


# Rows that one has


def test_rows_that_one_has_in_every_form():
    one, two = X + 1, X - 1
    for given, names in [
        (one, ["X_hypothetical"]),
        (one.tolist(), ["X_hypothetical"]),
        ([one, two], ["X_hypothetical 0", "X_hypothetical 1"]),
        (np.stack([one, two], axis=1), ["X_hypothetical 0", "X_hypothetical 1"]),
        ({"up": one, "down": two}, ["up", "down"]),
    ]:
        hypotheticals = Hypotheticals(double).fit(X)
        found = dict(hypotheticals.candidates(X, given))
        assert list(found) == ["double", *names] == hypotheticals.names(given)
        for table, expected in zip(found.values(), (2 * X, one, two), strict=False):
            np.testing.assert_array_equal(table, expected)
    with pytest.raises(ValueError, match=r"X_hypothetical has shape \(39, 3\)"):
        tables(Hypotheticals(), X, one[:-1])


# Steps


def test_steps_along_directions_by_definition():
    metric = SensitiveSubspaceMetric(directions=V).fit(X)
    hypotheticals = Hypotheticals(directions=True, steps=(-1, 0.5), subspace_radius=3.0, metric=FrozenEstimator(metric))
    found = tables(hypotheticals, X)
    assert list(found) == ["direction 0, -1", "direction 0, +0.5", "direction 1, -1", "direction 1, +0.5"]
    expected = [X - 3 * V[0], X + 1.5 * V[0], X - 3 * V[1], X + 1.5 * V[1]]
    for table, rows in zip(found.values(), expected, strict=True):
        np.testing.assert_allclose(table, rows, rtol=1e-15)
        np.testing.assert_array_equal(distances_of_rows(X, table, metric), 0.0)
    as_array = tables(clone(hypotheticals).set_params(metric=V), X)
    as_fitted = tables(clone(hypotheticals).set_params(metric=None), X, metric=metric)
    for other in (as_array, as_fitted):
        for name, table in found.items():
            np.testing.assert_array_equal(other[name], table)


def test_steps_of_gaps_by_definition():
    """The groups' gap: the difference d of their means, of which (1 - e^2 / d^2) counts."""
    found = tables(Hypotheticals(gaps=True, gap_radius=2.0, steps=[1.0]), X, sensitive_features=GROUP)
    parts = X[GROUP == 0], X[GROUP == 1]
    gap = np.abs(parts[1].mean(axis=0) - parts[0].mean(axis=0))
    own = np.stack([part.var(axis=0, ddof=1) for part in parts])
    pooled = sum((len(part) - 1) * variance for part, variance in zip(parts, own)) / (len(X) - 2)
    error = np.maximum(own, pooled) / [[len(part)] for part in parts]
    gap = np.maximum(gap - error.sum(axis=0) / gap, 0)
    assert list(found) == [f"feature {j}, +1 gaps" for j in np.flatnonzero(gap)]
    for j, table in zip(np.flatnonzero(gap), found.values(), strict=True):
        np.testing.assert_allclose(table, X + 2 * gap[j] * np.eye(3)[j], rtol=1e-12)


def test_steps_in_a_frame_move_its_columns_of_numbers():
    rows = FRAME[["age", "children"]]
    found = tables(Hypotheticals(directions=True, metric=[[0.5, 0.0], [0.0, 1.0]], steps=[1.0]), rows)
    pd.testing.assert_frame_equal(found["direction 0, +1"], rows.assign(age=rows["age"] + np.float32(0.5)))
    pd.testing.assert_frame_equal(found["direction 1, +1"], rows.assign(children=rows["children"] + 1.0))
    with pytest.raises(ValueError, match="'sex'|'f'"):
        tables(Hypotheticals(directions=True, metric=[[1.0, 0, 0, 0, 0]]), FRAME)


# Neighbours


@pytest.mark.parametrize("metric", [MahalanobisMetric([[2.0, 0, 0], [0, 0.01, 0], [0, 0, 30.0]]), V])
def test_neighbours_by_brute_force(metric):
    rows = np.vstack([X, X[:5], X[3:4] + 2 * V[0]])
    hypotheticals = Hypotheticals(n_neighbors=3, metric=metric)
    hypotheticals.fit(rows)
    asked = np.vstack([rows, RNG.normal(size=(10, 3))])
    found, M = dict(hypotheticals.candidates(asked)), hypotheticals.metric_.get_mahalanobis_matrix()
    for i, x in enumerate(asked):
        others = np.unique([other for other in rows if (other != x).any()], axis=0)
        distance = np.einsum("ij,jk,ik->i", others - x, M, others - x)
        for k in range(3):
            candidate = found[f"neighbour {k + 1}"][i]
            assert (others == candidate).all(axis=1).any()
            got = (candidate - x) @ M @ (candidate - x)
            assert got == pytest.approx(np.sort(distance)[k], rel=1e-9, abs=1e-12)
        assert len(np.unique([table[i] for table in found.values()], axis=0)) == 3


def test_neighbours_of_other_rows_are_training_rows_in_any_order():
    frame = pd.DataFrame(X, columns=list("abc"))
    new = pd.DataFrame(RNG.normal(size=(6, 3)), columns=list("abc"), index=list("uvwxyz"))
    hypotheticals = Hypotheticals(n_neighbors=2, metric=V)
    first = dict(hypotheticals.fit(frame).candidates(new))
    again = dict(hypotheticals.fit(frame.sample(frac=1.0, random_state=0)).candidates(new))
    for name, table in first.items():
        pd.testing.assert_frame_equal(table, again[name])
        assert table.index.equals(new.index)
        assert all((X == row).all(axis=1).any() for row in table.to_numpy())


def test_of_neighbours_at_one_distance_each_row_gets_the_same():
    """Rows that differ along a direction alone are all at distance 0, up to rounding."""
    rows = np.vstack([X + 0.1 * k * V[0] for k in range(6)])
    hypotheticals = Hypotheticals(n_neighbors=2, metric=V).fit(rows)
    alone = [dict(hypotheticals.candidates(row[None]))["neighbour 2"][0] for row in rows]
    together = dict(hypotheticals.candidates(rows))["neighbour 2"]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_allclose(distances_of_rows(rows, together, hypotheticals.metric_), 0.0, atol=1e-20)


# Bounds


@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize("feature_range", ["train", (-1, 2.0), ([-1.0, -np.inf, 0.0], [1.0, 5.0, np.inf])])
def test_candidates_stay_within_bounds_or_within_their_row(feature_range, as_frame):
    low, high = (X.min(0), X.max(0)) if feature_range == "train" else map(np.asarray, feature_range)
    rows = X * 1.5
    hypotheticals = Hypotheticals({"far": lambda rows: rows * 3}, feature_range=feature_range)
    if as_frame:
        found = dict(hypotheticals.fit(pd.DataFrame(X)).candidates(pd.DataFrame(rows)))["far"].to_numpy()
    else:
        found = dict(hypotheticals.fit(X).candidates(rows))["far"]
    np.testing.assert_array_equal(found, np.clip(rows * 3, np.minimum(low, rows), np.maximum(high, rows)))


def test_bounds_leave_text_categories_and_missing_values():
    found = tables(Hypotheticals(lambda rows: flip(rows).assign(age=99.0, children=99), feature_range="train"), FRAME)
    expected = flip(FRAME.copy())["sex"].cat.set_categories(["f", "m"])
    pd.testing.assert_series_equal(found["<lambda>"]["sex"], expected)
    pd.testing.assert_series_equal(found["<lambda>"]["income"], FRAME["income"])
    assert (found["<lambda>"]["age"] == FRAME["age"].max()).all() and (found["<lambda>"]["children"] == 39).all()


# Parameters


@pytest.mark.parametrize(
    "settings, message",
    [
        ({}, "There are no hypothetical rows"),
        ({"directions": True, "metric": V, "steps": []}, "steps"),
        ({"directions": True, "metric": V, "steps": (0.0, 1.0)}, "other than 0"),
        ({"directions": True, "metric": MahalanobisMetric(np.eye(3))}, "no directions"),
        ({"gaps": True, "metric": MahalanobisMetric(np.eye(3))}, "no gaps_"),
        ({"n_neighbors": 40, "metric": V}, "41 distinct"),
        ({"functions": double, "feature_range": (1, 0)}, "low 1.0 above high 0.0"),
        ({"functions": double, "feature_range": ([0, 0], 1)}, "one for each feature"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ValueError, match=message):
        tables(Hypotheticals(**settings), X)


def test_rows_of_other_columns_and_objects_that_are_not_fitted():
    hypotheticals = Hypotheticals(double)
    with pytest.raises(NotFittedError):
        hypotheticals.candidates(X)
    with pytest.raises(ValueError, match="2 features"):
        hypotheticals.fit(X).candidates(X[:, :2])
    with pytest.raises(ValueError, match="'income'"):
        hypotheticals.fit(FRAME).candidates(FRAME[list(FRAME)[::-1]])
    with pytest.raises(ValueError, match="shape"):
        hypotheticals.fit(X[0])


def test_what_stands_for_hypotheticals():
    assert check_hypotheticals(None).functions is None
    assert check_hypotheticals(flip).fit(FRAME).names_ == ["flip"]
    assert check_hypotheticals([flip, flip]).fit(FRAME).names_ == ["flip", "flip (2)"]
    assert check_hypotheticals({"other sex": flip}).fit(FRAME).names_ == ["other sex"]
    own = Hypotheticals()
    assert check_hypotheticals(own) is own
    for wrong in (X, "flip", [flip, "sex"], Hypotheticals):
        with pytest.raises(TypeError, match="X_hypothetical"):
            check_hypotheticals(wrong)


# Distances


def test_distances_of_rows_by_the_matrix():
    M = np.array([[2.0, 0.5, 0], [0.5, 1.0, 0], [0, 0, 3.0]])
    metric, other = MahalanobisMetric(M).fit(X), RNG.normal(size=X.shape)
    np.testing.assert_allclose(
        distances_of_rows(X, other, metric), np.einsum("ij,jk,ik->i", X - other, M, X - other), rtol=1e-10
    )
    huge = np.full_like(X, 1e200)
    with pytest.raises(ValueError, match="not finite"):
        distances_of_rows(X, huge, metric)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_move_along_a_direction_costs_nothing_in_spite_of_rounding(dtype):
    metric = SensitiveSubspaceMetric(directions=V).fit(X)
    rows = (1e3 * X).astype(dtype)
    moved = rows + (V[0] * 1.7).astype(dtype)
    np.testing.assert_array_equal(distances_of_rows(rows, moved, metric), 0.0)
    assert (distances_of_rows(rows, rows + np.array([0.0, 0.1, 0], dtype) * 1e2, metric) > 1).all()
