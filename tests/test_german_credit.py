"""German Credit: its variants read alike, and the ranking task that the paper makes of it."""

import io
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from _data import shared_data
from sklearn.utils import Bunch

from skfairrank.datasets import _german_credit as german_credit
from skfairrank.datasets import (
    encode_german_credit,
    fetch_german_credit,
    load_german_credit,
    make_credit_ranking,
)

pytestmark = pytest.mark.once

COLUMNS = [
    "Age",
    "Sex",
    "Job",
    "Housing",
    "Saving accounts",
    "Checking account",
    "Credit amount",
    "Duration",
    "Purpose",
]

# The first three people of the data set and one made up, in each of the three forms.
UCI = """\
A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1
A12 48 A32 A43 5951 A61 A73 2 A92 A101 2 A121 22 A143 A152 1 A173 1 A191 A201 2
A14 12 A34 A46 2096 A61 A74 2 A93 A101 3 A121 49 A143 A152 1 A172 2 A191 A201 1
A13 10 A32 A48 500 A64 A74 2 A94 A101 3 A121 25 A143 A153 1 A171 2 A191 A201 2
"""
KAGGLE = """\
,Age,Sex,Job,Housing,Saving accounts,Checking account,Credit amount,Duration,Purpose,Risk
0,67,male,2,own,NA,little,1169,6,radio/TV,good
1,22,female,2,own,little,moderate,5951,48,radio/TV,bad
2,49,male,1,own,little,,2096,12,education,good
3,25,male,0,free,rich,rich,500,10,education,bad
"""
OPENML = pd.DataFrame(
    {
        "checking_status": ["<0", "0<=X<200", "no checking", ">=200"],
        "duration": [6.0, 48.0, 12.0, 10.0],
        "credit_history": ["critical/other existing credit", "existing paid", "existing paid", "all paid"],
        "purpose": ["radio/tv", "radio/tv", "education", "retraining"],
        "credit_amount": [1169.0, 5951.0, 2096.0, 500.0],
        "savings_status": ["no known savings", "<100", "<100", ">=1000"],
        "personal_status": ["male single", "female div/dep/mar", "male single", "male mar/wid"],
        "age": [67.0, 22.0, 49.0, 25.0],
        "housing": ["own", "own", "own", "for free"],
        "job": ["skilled", "skilled", "unskilled resident", "unemp/unskilled non res"],
        "class": ["good", "bad", "good", "bad"],
    }
).astype(dict.fromkeys(["checking_status", "purpose", "personal_status", "housing", "job", "class"], "category"))


def fetch(monkeypatch, answer):
    """German Credit from an OpenML that answers with a frame or an error."""

    def fetch_openml(name, *, version, as_frame, **settings):
        assert (name, version, as_frame) == ("credit-g", 1, True)
        if isinstance(answer, Exception):
            raise answer
        return Bunch(frame=answer)

    monkeypatch.setattr(german_credit, "fetch_openml", fetch_openml)
    return fetch_german_credit()


@pytest.fixture(scope="module")
def people():
    return load_german_credit(shared_data("german_credit_kaggle.csv"))


def some_people(n=60, seed=0):
    """Made-up people with every category, 70 % of them good risks, for tests that need no real ones."""
    generator = np.random.default_rng(seed)
    data = pd.DataFrame({"Age": generator.integers(19, 75, n)})
    for column, categories in german_credit.CATEGORIES.items():
        data[column] = generator.choice(np.array(categories, dtype=object), n)
    data["Credit amount"] = generator.integers(250, 18000, n)
    data["Duration"] = generator.integers(4, 72, n)
    return Bunch(data=data[COLUMNS], target=(np.arange(n) % 10 < 7).astype(int))


# ------------------------------------------------------------------------------------------------------- the readers


def test_all_three_forms_give_the_same_table(monkeypatch):
    uci, kaggle = (load_german_credit(io.BytesIO(text.encode())) for text in (UCI, KAGGLE))
    quoted = OPENML.assign(checking_status=[f"'{value}'" for value in OPENML.checking_status])  # by one of its parsers
    for people in (uci, kaggle, fetch(monkeypatch, OPENML), fetch(monkeypatch, quoted)):
        assert list(people.data.columns) == people.feature_names == COLUMNS
        assert people.target.tolist() == [1, 0, 1, 0]
        pd.testing.assert_frame_equal(people.data, uci.data)
        pd.testing.assert_frame_equal(people.frame, uci.frame)
    assert uci.data.iloc[0].tolist() == [67, "male", 2, "own", "none", "little", 1169, 6, "radio/TV"]
    assert uci.data.iloc[2].tolist() == [49, "male", 1, "own", "little", "none", 2096, 12, "education"]
    assert uci.data.iloc[3].tolist() == [25, "male", 0, "free", "rich", "rich", 500, 10, "education"]
    assert not uci.data.isna().any().any()
    assert uci.frame["Risk"].tolist() == [1, 0, 1, 0] and uci.target_names == ["bad", "good"]


def test_both_files_agree_row_by_row():
    uci = load_german_credit(shared_data("german.data.gz"))
    kaggle = load_german_credit(shared_data("german_credit_kaggle.csv"))
    pd.testing.assert_frame_equal(uci.frame, kaggle.frame)
    assert len(uci.data) == 1000 and uci.target.sum() == 700


@pytest.mark.parametrize(
    "content, message",
    [
        ("1 " * 25 + "\n", "german.data-numeric, which cannot be decoded"),
        (UCI.replace("A46", "A99"), r"Purpose = \['A99'\]; known are \['A40'"),
        (KAGGLE.replace("2096", "lots"), "Credit amount = 'lots' in row 2: a whole number is expected"),
    ],
)
def test_unrecognised_files_are_named(tmp_path, content, message):
    path = tmp_path / "people.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as error:
        load_german_credit(path)
    assert "people.csv" in str(error.value)


def test_fetch_without_network_says_so_and_names_the_way_out(monkeypatch):
    with pytest.raises(ConnectionError, match=r"credit-g.*be fetched from OpenML.*load_german_credit\(path\)"):
        fetch(monkeypatch, URLError("Name or service not known"))


# ---------------------------------------------------------------------------------------------------------- encoding


def test_encoding_standardises_over_the_people_given():
    people = some_people()
    X = encode_german_credit(people.data)
    assert X.shape == (60, 29) and X.to_numpy().dtype == float
    for column in ("Age", "Credit amount", "Duration"):
        values = people.data[column].to_numpy(dtype=float)
        np.testing.assert_allclose(X[column], (values - values.mean()) / values.std(), atol=1e-12)
    onehot = X.to_numpy()[:, 3:]
    assert np.isin(onehot, (0, 1)).all() and (onehot.sum(axis=1) == 6).all()
    assert list(X.columns[:5]) == ["Age", "Credit amount", "Duration", "Sex_female", "Sex_male"]
    for column, categories in german_credit.CATEGORIES.items():
        for category in categories:
            np.testing.assert_array_equal(X[f"{column}_{category}"], people.data[column] == category)


def test_encoding_takes_a_missing_account_for_no_account():
    data = some_people().data
    missing = data.assign(**{"Saving accounts": data["Saving accounts"].replace({"none": None})})
    assert missing["Saving accounts"].isna().any()
    pd.testing.assert_frame_equal(encode_german_credit(missing), encode_german_credit(data))


@pytest.mark.parametrize("seed", [0, 1])
def test_columns_agree_with_the_authors_preprocessing(people, seed):
    """Each row of their arrays is one of the 1000 people, with that person's relevance and age group."""
    X = encode_german_credit(people.data).to_numpy()
    with np.load(shared_data(f"german_seed{seed}.npz")) as recorded:
        recorded = dict(recorded)
    used = {}
    for side in ("train", "test"):
        theirs = recorded[f"X_{side}"]
        distance = np.abs(theirs[:, np.newaxis, :3] - X[np.newaxis, :, :3]).max(axis=2)
        row = np.argmin(distance + np.where((theirs[:, np.newaxis, 3:] != X[:, 3:]).any(axis=2), np.inf, 0), axis=1)
        np.testing.assert_allclose(theirs, X[row], atol=1e-9)
        np.testing.assert_array_equal(recorded[f"y_{side}"], people.target[row])
        np.testing.assert_array_equal(recorded[f"age_group_{side}"], people.data["Age"].to_numpy()[row] >= 25)
        used[side] = set(row)
    assert not used["train"] & used["test"]


# -------------------------------------------------------------------------------------------------- the ranking task


@pytest.mark.parametrize("side", ["train", "test"])
def test_credit_ranking_rows_are_people(side):
    people = some_people()
    task = make_credit_ranking(people, n_train_queries=50, n_test_queries=20, query_size=6, random_state=5)
    rows = task[f"rows_{side}"]
    np.testing.assert_array_equal(task[f"X_{side}"], encode_german_credit(people.data).to_numpy()[rows])
    np.testing.assert_array_equal(task[f"y_{side}"], people.target[rows])
    np.testing.assert_array_equal(task[f"sensitive_features_{side}"], people.data["Age"].to_numpy()[rows] >= 25)
    assert task[f"sensitive_features_{side}"].dtype == bool


def test_credit_ranking_splits_people_not_queries():
    people = some_people(100)
    task = make_credit_ranking(people, n_train_queries=400, n_test_queries=400, test_size=0.3, random_state=0)
    train, test = set(task.rows_train), set(task.rows_test)
    # With 4000 draws from each side nobody is left out (the chance is below 1e-15), so the sides are seen whole.
    assert len(train) == 70 and len(test) == 30 and not train & test


def test_number_of_relevant_items_is_binomial_given_that_it_is_not_zero():
    """The law of the authors' sampling: each place is good with probability .4, queries without any are redrawn."""
    task = make_credit_ranking(some_people(), n_train_queries=20_000, n_test_queries=1, random_state=0)
    n_relevant = task.y_train.reshape(-1, 10).sum(axis=1)
    expected = scipy.stats.binom.pmf(np.arange(11), 10, 0.4)
    expected[0] = 0
    expected /= expected.sum()
    counts = np.bincount(n_relevant, minlength=11)
    assert counts[0] == 0
    pooled = [np.r_[values[1:9], values[9:].sum()] for values in (counts, 20_000 * expected)]
    assert scipy.stats.chisquare(*pooled).pvalue > 1e-3
    mean, deviation = expected @ np.arange(11), np.sqrt(expected @ np.arange(11) ** 2 - (expected @ np.arange(11)) ** 2)
    assert mean == pytest.approx(4 / (1 - 0.6**10))
    assert abs(n_relevant.mean() - mean) < 4 * deviation / np.sqrt(20_000)
    # No place of a query is likelier than another to hold a good risk.
    per_place = task.y_train.reshape(-1, 10).sum(axis=0)
    assert scipy.stats.chisquare(per_place).pvalue > 1e-3


def test_people_of_a_kind_are_equally_likely():
    people = some_people(40)
    task = make_credit_ranking(people, n_train_queries=5000, n_test_queries=1, test_size=0.25, random_state=1)
    for kind in (0, 1):
        counts = np.bincount(task.rows_train[task.y_train == kind], minlength=40)
        assert scipy.stats.chisquare(counts[counts > 0]).pvalue > 1e-3


def test_credit_ranking_extreme_fractions():
    people = some_people()
    sizes = {"n_train_queries": 50, "n_test_queries": 5}
    assert make_credit_ranking(people, relevant_fraction=1, random_state=0, **sizes).y_train.all()
    # Redrawing would take some 1e200 tries here.
    rare = make_credit_ranking(people, relevant_fraction=1e-200, random_state=0, **sizes)
    assert (rare.y_train.reshape(50, 10).sum(axis=1) == 1).all()
    only_good = Bunch(data=people.data, target=np.ones(60, dtype=int))
    assert make_credit_ranking(only_good, relevant_fraction=1, random_state=0, **sizes).y_test.all()


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"test_size": 0.001}, "The test side has . good and . bad risks"),
        ({"relevant_fraction": 0}, "relevant_fraction=0"),
    ],
)
def test_credit_ranking_names_what_is_wrong(parameters, message):
    with pytest.raises(ValueError, match=message):
        make_credit_ranking(some_people(), random_state=0, **parameters)
