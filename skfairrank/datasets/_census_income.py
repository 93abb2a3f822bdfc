"""Census income of 1994 (UCI Adult): people with features, with sex, and with their twins of the other sex."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skfairrank.datasets._letor import read_text

DESCR = """\
Census income of 1994 (Adult, UCI Machine Learning Repository; B. Becker and R. Kohavi; CC BY 4.0).

Features: age, years of education, capital gain and loss (log(1 + x)), hours per week, and one column for each category of work
class, marital status, occupation, relationship, race and sex. Target: 1 for an income above 50,000 dollars.
"""

COLUMNS = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race sex capital_gain capital_loss "
    "hours_per_week native_country income"
).split()
NUMBERS = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
LOGARITHMIC = ["capital_gain", "capital_loss"]
FAMILY = ("marital_status", "relationship", "sex")
CATEGORIES = {
    "workclass": "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov Without-pay",
    "marital_status": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated Widowed",
    "occupation": "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
    "Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support Transport-moving",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
}
INCOMES = ("<=50K", ">50K")
OTHER_SEX = {"Female": "Male", "Male": "Female"}
SPOUSE = {"Husband": "Wife", "Wife": "Husband"}


def load_census_income(path) -> Bunch:
    """Distinct people of the census of 1994, each with a twin of the other sex.

    Parameters
    ----------
    path : str, path-like or file object
        UCI's ``adult.data``, with or without a line of column names, plain or compressed. A missing value, ``?``, is a category
        of its own.

    Returns
    -------
    people : Bunch
        ``data``, a DataFrame of float, shape (n_people, 49): five numbers, in their own units but for capital gain and loss,
        which are log(1 + x), and one column of 0 and 1 for each category, called ``sex_Female`` and so on. Nothing is
        standardised: do that with the rows that you train on. ``twin``, the same people with the other sex, wives as husbands
        and husbands as wives. ``target`` (n_people,), 1 for an income above 50,000 dollars. ``sensitive_features``
        (n_people,), 1 for women. ``family`` (49,), True for columns of sex, relationship and marital status.
        ``feature_names``, ``DESCR``.

    Raises
    ------
    ValueError
        If the file is not this table, or has a value that the data set does not know.

    Examples
    --------
    >>> import io
    >>> work = "39, ?, 77516, HS-grad, 9, Never-married, Sales, Unmarried"
    >>> line = work + ", White, Male, 2174, 0, 40, Cuba, >50K"
    >>> people = load_census_income(io.StringIO(line))
    >>> people.data.shape, people.target.tolist(), people.sensitive_features.tolist()
    ((1, 49), [1], [0])
    >>> float(people.data["sex_Male"].iloc[0]), float(people.twin["sex_Male"].iloc[0])
    (1.0, 0.0)
    """
    people = _read(path).drop_duplicates(ignore_index=True)
    numbers = people[NUMBERS].astype(float)
    numbers[LOGARITHMIC] = np.log1p(numbers[LOGARITHMIC])
    other = people.assign(sex=people["sex"].map(OTHER_SEX), relationship=people["relationship"].replace(SPOUSE))
    data, twin = (pd.concat([numbers, _one_hot(rows)], axis=1) for rows in (people, other))
    return Bunch(
        data=data,
        twin=twin,
        target=(people["income"] == INCOMES[1]).to_numpy(np.int64),
        sensitive_features=(people["sex"] == "Female").to_numpy(np.int64),
        family=np.array([name.startswith(FAMILY) for name in data.columns]),
        feature_names=list(data.columns),
        DESCR=DESCR,
    )


def _read(path) -> pd.DataFrame:
    text, name = read_text(path)
    first = next((line for line in text.splitlines() if line.strip()), "")
    if len(first.split(",")) != len(COLUMNS):
        raise ValueError(
            f"{name} is not UCI's adult.data: it begins {first[:60]!r}. Expected are {len(COLUMNS)} columns between commas: "
            f"{', '.join(COLUMNS)}."
        )
    # Files differ in whether a blank follows a comma, and in how they write names: education-num, education.num.
    header = [cell.strip().strip('"').replace("-", "_").replace(".", "_") for cell in first.split(",")]
    people = pd.read_csv(
        io.StringIO(text),
        header=0 if "age" in header else None,
        names=header if "age" in header else COLUMNS,
        skipinitialspace=True,
        keep_default_na=False,
    )
    absent = [column for column in COLUMNS if column not in people.columns]
    if absent:
        raise ValueError(f"{name} lacks the columns {absent}; it has {header}.")
    return _checked(people[COLUMNS], name)


def _checked(people: pd.DataFrame, name: str) -> pd.DataFrame:
    """The table, once all numbers are numbers and all categories are known."""
    for column in NUMBERS:
        values = pd.to_numeric(people[column], errors="coerce")
        if values.isna().any() or (values < 0).any():
            row = int(np.flatnonzero(values.isna() | (values < 0))[0])
            raise ValueError(
                f"{name} has {column} = {str(people[column].iloc[row])!r} for person {row}: a number from 0 is expected."
            )
    known = {**{column: names.split() for column, names in CATEGORIES.items()}, "income": list(INCOMES)}
    for column, names in known.items():
        unknown = sorted(set(people[column].astype(str)) - set(names))
        if unknown:
            raise ValueError(f"{name} has {column} = {unknown}; known are {names}.")
    return people


def _one_hot(people: pd.DataFrame) -> pd.DataFrame:
    """A column for each category, whichever occur."""
    categories = {column: pd.Categorical(people[column], names.split()) for column, names in CATEGORIES.items()}
    return pd.get_dummies(pd.DataFrame(categories), dtype=float)
