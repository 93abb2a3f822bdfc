"""German Credit (UCI Statlog), read from each of its three common forms into one table of nine features."""

from __future__ import annotations

import io
from http.client import HTTPException
from urllib.error import URLError

import numpy as np
import pandas as pd
from sklearn.datasets import fetch_openml
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from skfairrank.datasets._files import file_name, open_binary
from skfairrank.datasets._german_codes import (
    CATEGORIES,
    COLUMNS,
    NUMERIC,
    OPENML_CODES,
    OPENML_COLUMNS,
    UCI_CODES,
    UCI_COLUMNS,
)

__all__ = ["encode_german_credit", "fetch_german_credit", "load_german_credit"]

DESCR = """\
German Credit (Statlog, UCI Machine Learning Repository; H. Hofmann): 1000 people, 700 of them good credit risks.

Nine of the original features, with the labels of the variant on Kaggle that the authors of "Individually Fair Ranking"
used: Age (years), Sex, Job (0 unskilled and not resident, 1 unskilled, 2 skilled, 3 highly skilled), Housing, Saving
accounts, Checking account, Credit amount (Deutsche Mark), Duration (months), Purpose. Target: 1 for a good risk.

Sex is taken from "personal status and sex", whose code A92 covers all women. An account that is unknown or that does
not exist is "none". New and used cars are both "car"; retraining counts as education. There are no missing values.
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
    name = file_name(path)
    with open_binary(path) as file:
        content = file.read()
    text = content if isinstance(content, str) else content.decode("utf-8-sig", errors="replace")
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
    return _people(_decode(fetched.frame, OPENML_COLUMNS, OPENML_CODES, "OpenML's credit-g"), "OpenML's credit-g")


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
    if n_fields == 21 and first.split()[0] in UCI_CODES["Checking account"]:
        table = pd.read_csv(io.StringIO(text), sep=r"\s+", header=None)
        return _decode(table, UCI_COLUMNS, UCI_CODES, name)
    numeric = " This looks like german.data-numeric, which cannot be decoded." if n_fields == 25 else ""
    raise ValueError(
        f"{name} is not a German Credit file: it begins {first[:60]!r}. Expected are UCI's german.data (21 columns "
        f"between blanks, the first A11 to A14) or a CSV file with the columns {', '.join(COLUMNS)}, Risk.{numeric}"
    )


def _decode(table: pd.DataFrame, columns: dict, codes: dict[str, dict], name: str) -> pd.DataFrame:
    absent = [column for column in columns if column not in table.columns]
    if absent:
        raise ValueError(f"{name} lacks the columns {absent}; it has {list(table.columns)}.")
    frame = table[list(columns)].rename(columns=columns)
    for column, meaning in codes.items():
        # OpenML's parsers differ in whether they keep the quotes of ARFF.
        raw = frame[column].astype(str).str.strip().str.strip("'\"")
        unknown = sorted(set(raw) - set(meaning))
        if unknown:
            raise ValueError(f"{name} has {column} = {unknown}; known are {list(meaning)}.")
        frame[column] = [meaning[value] for value in raw]
    return frame


def _people(frame: pd.DataFrame, name: str) -> Bunch:
    data = _tidy(frame, name)
    unknown = sorted(set(frame["Risk"].astype(str)) - {"good", "bad"})
    if unknown:
        raise ValueError(f"{name} has Risk = {unknown}; known are ['good', 'bad'].")
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
        unknown = sorted(set(tidy[column].astype(object)) - set(categories), key=str)
        if unknown:
            raise ValueError(f"{name} has {column} = {unknown}; known are {categories}.")
        if column != "Job":
            tidy[column] = pd.Categorical(tidy[column], categories=categories)
    return tidy
