"""German Credit (UCI Statlog): three common forms read into one table, and the ranking task of Bower et al. (2021) from it."""

from __future__ import annotations

import io
import math
from http.client import HTTPException
from urllib.error import URLError

import numpy as np
import pandas as pd
import scipy.stats
from sklearn.datasets import fetch_openml
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from skfairrank._random import as_generator
from skfairrank.datasets._generators import check_count, check_number, draw
from skfairrank.datasets._letor import read_text

# The nine features and the label: position in UCI's german.data, counted from 0, and name in OpenML's credit-g.
PLACES = {
    "Age": (12, "age"),
    "Sex": (8, "personal_status"),
    "Job": (16, "job"),
    "Housing": (14, "housing"),
    "Saving accounts": (5, "savings_status"),
    "Checking account": (0, "checking_status"),
    "Credit amount": (4, "credit_amount"),
    "Duration": (1, "duration"),
    "Purpose": (3, "purpose"),
    "Risk": (20, "class"),
}
# What codes mean: the code in german.data, the one in credit-g, and the label here.
CODES: dict[str, list[tuple]] = {
    "Sex": [
        ("A91", "male div/sep", "male"),
        ("A92", "female div/dep/mar", "female"),
        ("A93", "male single", "male"),
        ("A94", "male mar/wid", "male"),
        ("A95", "female single", "female"),
    ],
    "Job": [
        ("A171", "unemp/unskilled non res", 0),
        ("A172", "unskilled resident", 1),
        ("A173", "skilled", 2),
        ("A174", "high qualif/self emp/mgmt", 3),
    ],
    "Housing": [("A151", "rent", "rent"), ("A152", "own", "own"), ("A153", "for free", "free")],
    "Saving accounts": [
        ("A61", "<100", "little"),
        ("A62", "100<=X<500", "moderate"),
        ("A63", "500<=X<1000", "quite rich"),
        ("A64", ">=1000", "rich"),
        ("A65", "no known savings", "none"),
    ],
    "Checking account": [
        ("A11", "<0", "little"),
        ("A12", "0<=X<200", "moderate"),
        ("A13", ">=200", "rich"),
        ("A14", "no checking", "none"),
    ],
    "Purpose": [
        ("A40", "new car", "car"),
        ("A41", "used car", "car"),
        ("A42", "furniture/equipment", "furniture/equipment"),
        ("A43", "radio/tv", "radio/TV"),
        ("A44", "domestic appliance", "domestic appliances"),
        ("A45", "repairs", "repairs"),
        ("A46", "education", "education"),
        ("A47", "vacation", "vacation/others"),
        ("A48", "retraining", "education"),
        ("A49", "business", "business"),
        ("A410", "other", "vacation/others"),
    ],
    "Risk": [("1", "good", "good"), ("2", "bad", "bad")],
}
COLUMNS = [name for name in PLACES if name != "Risk"]
NUMERIC = ["Age", "Credit amount", "Duration"]
# In the order of the columns of the paper's one-hot encoding, in which no account ("NA") comes first.
CATEGORIES = {
    name: sorted({label for *_, label in CODES[name]}, key=lambda label: (label != "none", label))
    for name in CODES
    if name != "Risk"
}
UCI, OPENML = 0, 1
# Younger than 25, or 25 and older: Kamiran and Calders (2009), as in the paper.
AGE_OF_OLDER_GROUP = 25


DESCR = """\
German Credit (Statlog, UCI Machine Learning Repository; H. Hofmann): 1000 people, 700 of them good credit risks.

Nine of the original features, with the labels of the variant on Kaggle that the authors of "Individually Fair Ranking"
used: Age (years), Sex, Job (0 unskilled and not resident, 1 unskilled, 2 skilled, 3 highly skilled), Housing, Saving
accounts, Checking account, Credit amount (Deutsche Mark), Duration (months), Purpose. Target: 1 for a good risk.

Sex is taken from "personal status and sex", whose code A92 covers all women. An account that is unknown or that does
not exist is "none". New and used cars are both "car"; retraining counts as education. There are no missing values.
"""
RANKING_DESCR = """\
German Credit as a ranking task (Bower et al. 2021, after Singh and Joachims 2019).

Age, credit amount and duration are standardised over all people, the other features are one-hot encoded. Then the
people are split at random, and queries are drawn with replacement from each side, so that no person occurs on both.
Relevance: 1 for a good credit risk. Sensitive feature: whether a person is 25 or older.
"""


def load_german_credit(path) -> Bunch:
    """German Credit from a local file, whichever of its two variants it is.

    Parameters
    ----------
    path : str, path-like or file object
        UCI's ``german.data`` (21 columns, coded, no header) or the CSV file with a ``Risk`` column, plain or
        compressed.

    Returns
    -------
    people : Bunch
        The same from both variants: ``data``, a DataFrame of Age, Sex, Job, Housing, Saving accounts, Checking account,
        Credit amount, Duration and Purpose, strings as categories ("none" where there is no account); ``target``, an
        array with 1 for a good risk and 0 for a bad one; ``frame``, both together, the target as Risk;
        ``target_names``, ``feature_names``, ``DESCR``.

    Raises
    ------
    ValueError
        If the file is neither variant, or has a value that the data set does not know.
    """
    text, name = read_text(path)
    return _people(_read(text, name), name)


def fetch_german_credit(*, data_home=None, cache: bool = True, n_retries: int = 3, delay: float = 1.0) -> Bunch:
    """German Credit from OpenML ("credit-g", version 1), in the form of `load_german_credit`.

    Parameters
    ----------
    data_home : str or path-like, optional
        Where scikit-learn keeps downloads; see `sklearn.datasets.fetch_openml`, also for what follows.
    cache : bool
        Whether a download is kept, and used the next time.
    n_retries : int
        How often to try again after a network error.
    delay : float
        Seconds between tries.

    Returns
    -------
    people : Bunch
        As from `load_german_credit`.

    Raises
    ------
    ConnectionError
        If OpenML cannot be reached and the data set is not in the cache.
    OSError
        If reading or writing the cache fails.
    """
    try:
        fetched = fetch_openml(
            "credit-g", version=1, as_frame=True, data_home=data_home, cache=cache, n_retries=n_retries, delay=delay
        )
    except (OSError, HTTPException) as error:
        network = isinstance(error, (URLError, ConnectionError, TimeoutError, HTTPException))
        raise (ConnectionError if network else OSError)(
            f"German Credit ('credit-g', version 1) could not be fetched from OpenML: {error or type(error).__name__}. "
            "Try again with a network, or download german.data from the UCI repository by other means and read it with "
            "load_german_credit(path)."
        ) from error
    return _people(_decode(fetched.frame, OPENML, "OpenML's credit-g"), "OpenML's credit-g")


def encode_german_credit(data) -> pd.DataFrame:
    """Numeric features of the people, in the paper's column order.

    Age, credit amount and duration are standardised over the people given (mean 0, standard deviation 1); then come
    one-hot columns for sex (columns 3 and 4), job, housing, saving accounts, checking account and purpose. The absence
    of an account is a category of its own.

    Parameters
    ----------
    data : DataFrame, shape (n_people, 9)
        The ``data`` of `load_german_credit`, or some of its rows. All 29 columns come out whatever categories occur.

    Returns
    -------
    X : DataFrame of float, shape (n_people, 29)
        With the index of `data`; columns are called "Age", ..., "Sex_female", "Sex_male", "Job_0", ...
    """
    data = _tidy(data, "data")
    numeric = pd.DataFrame(StandardScaler().fit_transform(data[NUMERIC].astype(float)), data.index, NUMERIC)
    categorical = data[list(CATEGORIES)].assign(Job=pd.Categorical(data["Job"], CATEGORIES["Job"]))
    return pd.concat([numeric, pd.get_dummies(categorical, dtype=float)], axis=1)


def make_credit_ranking(
    people: Bunch,
    *,
    n_train_queries: int = 500,
    n_test_queries: int = 100,
    query_size: int = 10,
    test_size: float = 0.2,
    relevant_fraction: float = 0.4,
    random_state=None,
) -> Bunch:
    r"""German Credit as a ranking task: queries of 10 people, about 4 of them good risks (Bower et al. 2021).

    The people are standardised and one-hot encoded (`encode_german_credit`) and split into a training and a test side.
    Each place of a query is then filled with replacement by a good risk with probability f = `relevant_fraction`, by a
    bad one otherwise, all people of a kind being equally likely; a query without any good risk is drawn again. So the
    number of relevant items of a query of n is binomial given that it is not 0, with the mean

    .. math:: \frac{n f}{1 - (1 - f)^n} = 4.02 \quad \text{for } n = 10, f = .4,

    although 70 % of all people are good risks. (Drawn directly from that distribution, nothing is drawn again.)

    Parameters
    ----------
    people : Bunch
        What `load_german_credit` or `fetch_german_credit` returns; of it ``data`` and ``target`` are used.
    n_train_queries, n_test_queries : int
        Number of queries drawn from each side.
    query_size : int
        People in a query.
    test_size : float
        Fraction of the people on the test side, rounded up to whole people.
    relevant_fraction : float
        Probability that a place is filled by a good risk, in (0, 1].
    random_state : None, int, RandomState or Generator
        Where the random numbers come from; an int makes the data reproducible.

    Returns
    -------
    task : Bunch
        ``X_train`` (n_train_queries * query_size, 29), ``y_train`` (1 good, 0 bad), ``qid_train``,
        ``sensitive_features_train`` (bool, true for 25 and older), ``rows_train`` (which row of `people` is in each
        place), and the same for test; ids of test queries go on where those of training queries end, so that both can
        be stacked. ``feature_names`` (29,); ``age_column`` (0) and ``sex_columns`` ([3, 4]), positions in X; ``DESCR``.

    Raises
    ------
    ValueError
        If a parameter is out of range, or a side of the split lacks people of one kind.

    Notes
    -----
    As in the paper, means and standard deviations are those of all people, taken before the split: the test people have
    a (slight) say in how the training people are scaled.

    References
    ----------
    Bower, Eftekhari, Yurochkin, Sun: Individually Fair Ranking, ICLR 2021.

    Singh, Joachims: Policy Learning for Fairness in Ranking, NeurIPS 2019.
    """
    n_train_queries = check_count(n_train_queries, "n_train_queries")
    n_test_queries = check_count(n_test_queries, "n_test_queries")
    query_size = check_count(query_size, "query_size")
    relevant_fraction = check_number(relevant_fraction, "relevant_fraction", above=0, high=1)
    test_size = check_number(test_size, "test_size", above=0, high=1)
    encoded = encode_german_credit(people.data)
    X, y = encoded.to_numpy(), np.asarray(people.target)
    if y.shape != (len(X),) or not np.isin(y, (0, 1)).all():
        raise ValueError(f"people.target must be 1 (good) or 0 (bad) for each of the {len(X)} people.")
    older = people.data["Age"].to_numpy() >= AGE_OF_OLDER_GROUP
    generator = as_generator(random_state)

    n_test = math.ceil(round(test_size * len(X), 9))
    shuffled = generator.permutation(len(X))
    sides = {
        "train": (shuffled[n_test:], n_train_queries, 0),
        "test": (shuffled[:n_test], n_test_queries, n_train_queries),
    }
    task = Bunch()
    for side, (members, n_queries, first_id) in sides.items():
        good, bad = members[y[members] == 1], members[y[members] == 0]
        if not len(good) or (not len(bad) and relevant_fraction < 1):
            raise ValueError(
                f"The {side} side has {len(good)} good and {len(bad)} bad risks of {len(X)} people at "
                f"test_size={test_size:g}: queries need some of both. Give more people or another test_size."
            )
        rows = _draw_queries(good, bad, n_queries, query_size, relevant_fraction, generator).ravel()
        task[f"X_{side}"] = X[rows]
        task[f"y_{side}"] = y[rows]
        task[f"qid_{side}"] = first_id + np.repeat(np.arange(n_queries), query_size)
        task[f"sensitive_features_{side}"] = older[rows]
        task[f"rows_{side}"] = rows
    task.feature_names = list(encoded.columns)
    task.age_column = task.feature_names.index("Age")
    task.sex_columns = [task.feature_names.index(name) for name in ("Sex_female", "Sex_male")]
    task.DESCR = RANKING_DESCR
    return task


def _draw_queries(good, bad, n_queries: int, query_size: int, relevant_fraction: float, generator) -> np.ndarray:
    """Rows of people (n_queries, query_size), at least one good risk in each query."""
    counts = np.arange(1, query_size + 1)
    n_relevant = draw(generator, counts, scipy.stats.binom.logpmf(counts, query_size, relevant_fraction), n_queries)
    relevant = np.arange(query_size) < n_relevant[:, np.newaxis]
    relevant = generator.permuted(relevant, axis=1)
    rows = good[generator.integers(len(good), size=relevant.shape)]
    if len(bad):
        rows = np.where(relevant, rows, bad[generator.integers(len(bad), size=relevant.shape)])
    return rows


def _read(text: str, name: str) -> pd.DataFrame:
    first = next((line for line in text.splitlines() if line.strip()), "")
    header = [cell.strip().strip('"') for cell in first.split(",")]
    if set(COLUMNS) <= set(header):
        if "Risk" not in header:
            raise ValueError(
                f"{name} has German Credit's nine features but no Risk column: it is the variant without labels. "
                "Get the CSV file with Risk, or UCI's german.data."
            )
        return pd.read_csv(io.StringIO(text), skipinitialspace=True)
    n_fields = len(first.split())
    if n_fields == 21 and first.startswith("A1"):
        return _decode(pd.read_csv(io.StringIO(text), sep=r"\s+", header=None), UCI, name)
    numeric = " This looks like german.data-numeric, which cannot be decoded." if n_fields == 25 else ""
    raise ValueError(
        f"{name} is not a German Credit file: it begins {first[:60]!r}. Expected are UCI's german.data (21 columns "
        f"between blanks, the first A11 to A14) or a CSV file with the columns {', '.join(COLUMNS)}, Risk.{numeric}"
    )


def _decode(table: pd.DataFrame, form: int, name: str) -> pd.DataFrame:
    """The columns and labels of a table of UCI's or OpenML's form."""
    columns = {places[form]: column for column, places in PLACES.items()}
    absent = [column for column in columns if column not in table.columns]
    if absent:
        raise ValueError(f"{name} lacks the columns {absent}; it has {list(table.columns)}.")
    frame = table[list(columns)].rename(columns=columns)
    for column, codes in CODES.items():
        # OpenML's parsers differ in whether they keep the quotes of ARFF.
        raw = frame[column].astype(str).str.strip().str.strip("'\"")
        meaning = {code[form]: code[-1] for code in codes}
        _refuse_unknown(raw, list(meaning), column, name)
        frame[column] = [meaning[value] for value in raw]
    return frame


def _refuse_unknown(values, known: list, column: str, name: str) -> None:
    unknown = sorted(set(values.astype(object)) - set(known), key=str)
    if unknown:
        raise ValueError(f"{name} has {column} = {unknown}; known are {known}.")


def _people(frame: pd.DataFrame, name: str) -> Bunch:
    data = _tidy(frame, name)
    _refuse_unknown(frame["Risk"].astype(str), ["good", "bad"], "Risk", name)
    target = (frame["Risk"] == "good").to_numpy(dtype=np.int64)
    return Bunch(
        data=data,
        target=target,
        frame=data.assign(Risk=target),
        target_names=["bad", "good"],
        feature_names=list(COLUMNS),
        DESCR=DESCR,
    )


def _tidy(frame, name: str) -> pd.DataFrame:
    """The nine columns, numbers as ints and strings as categories in the fixed order."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"{name} is a {type(frame).__name__}: give the DataFrame that load_german_credit returns as data."
        )
    absent = [column for column in COLUMNS if column not in frame.columns]
    if absent:
        raise ValueError(f"{name} lacks the columns {absent}; expected are {COLUMNS}.")
    tidy = frame[COLUMNS].copy()
    for column in ("Saving accounts", "Checking account"):
        # A missing value means that there is no account, or none is known.
        tidy[column] = tidy[column].astype(object).where(tidy[column].notna(), "none")
    for column in [*NUMERIC, "Job"]:
        numbers = pd.to_numeric(tidy[column], errors="coerce")
        if numbers.isna().any() or (numbers != numbers.round()).any():
            row = int(np.flatnonzero(numbers.isna() | (numbers != numbers.round()))[0])
            raise ValueError(
                f"{name} has {column} = {str(tidy[column].iloc[row])!r} in row {row}: a whole number is expected."
            )
        tidy[column] = numbers.astype(np.int64)
    for column, categories in CATEGORIES.items():
        _refuse_unknown(tidy[column], categories, column, name)
        if column != "Job":
            tidy[column] = pd.Categorical(tidy[column], categories=categories)
    return tidy
