"""What gives a person's group away: how well columns tell it, each alone and all together."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import Bunch

from skfairrank._candidates import as_frame
from skfairrank._checks import as_whole_numbers
from skfairrank._queries import Queries
from skfairrank._random import as_generator
from skfairrank._sensitive import Attribute, read_attributes

_JOINT = 1.5  # by so much more than the best column all together must tell beyond chance
_ROWS, _FOLDS = 5000, 3  # beside a certificate, and in a report
_TELLS = 0.6  # an area under the ROC curve, from which on a certificate says that other columns tell the group
_FEW = 10  # combinations of values that are taken for groups


def group_leakage(X, sensitive_features, *, qid=None, cv=5, random_state=None):
    """How well the features give the group away, each column alone and all together.

    Of each row the group is predicted by a model that was trained on other rows: of all columns gradient-boosted trees, of a
    single one a tree. If the columns tell the group, nobody who drops the group's own column, or certifies a ranker for
    exchanging it, has made the ranker blind to the group. Gaps of single columns see what a column tells alone; where columns
    tell much more together, they do not (``is_joint``).

    Parameters
    ----------
    X : table, shape (n_rows, n_features)
        Columns of numbers, text or categories, with or without missing values.
    sensitive_features : array-like, shape (n_rows,)
        The group of each row, or an amount such as an age. Rows where it is missing are left out.
    qid : array-like, shape (n_rows,), optional
        Rows of a query are kept in one fold: give it where people of a query are more alike.
    cv : int, default=5
        Number of folds.
    random_state : None, int, RandomState or Generator
        For the folds.

    Returns
    -------
    leakage : Bunch
        ``auc``, of all columns, and ``auc_of_columns``, a Series: the area under the ROC curve, .5 is chance and 1 certainty; of
        several groups the mean over one against the rest. Of an amount in their place ``r2`` and ``r2_of_columns``, 0 is chance.
        ``is_joint``: whether all columns tell half as much again beyond chance as the best single one. ``n_rows``, those with a
        known group.

    Raises
    ------
    ValueError
        If there are several attributes, `cv` is out of range, or there are no two groups with as many rows as folds. Smaller
        groups are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairrank.inspection import group_leakage
    >>> rng = np.random.default_rng(0)
    >>> group, a = rng.integers(0, 2, 1000), rng.integers(0, 2, 1000)
    >>> # neither tells it alone
    >>> found = group_leakage(np.column_stack([a, a ^ group]), group, random_state=0)
    >>> found.auc, found.is_joint, bool(found.auc_of_columns.max() < 0.6)
    (1.0, True, True)
    """
    X = as_frame(X)
    attributes = read_attributes(sensitive_features, len(X), unknown_groups="leave_out", owner="group_leakage")
    if len(attributes) != 1:
        raise ValueError(f"sensitive_features has {len(attributes)} columns: give one after the other.")
    (attribute,) = attributes
    folds = as_whole_numbers(np.asarray(cv))
    if folds is None or folds.ndim or folds < 2:
        raise ValueError(f"cv={cv!r}: give a number of folds, at least 2.")
    queries = None if qid is None else Queries.from_qid(qid, len(X)).codes
    found = _leakage(X, attribute, queries, int(folds), as_generator(random_state))
    if found is None:
        raise ValueError(
            f"There are no two groups of at least {folds} rows, one for each fold: there is nothing to tell apart."
        )
    return found


def quick_leakage(X, attribute: Attribute) -> Bunch | None:
    """`group_leakage` of at most 5,000 rows in three folds; None where there are too few rows of two groups."""
    return _leakage(as_frame(X), attribute, None, _FOLDS, np.random.default_rng(0), _ROWS)


def leakage_of_others(X, is_changed: np.ndarray) -> Bunch | None:
    """How well other columns tell what hypotheticals change, where that is the column of an attribute, or a few one-hot columns.

    Parameters
    ----------
    X : table
    is_changed : ndarray of bool, shape (n_features,)
        Which columns some hypothetical changes.

    Returns
    -------
    leakage : Bunch or None
        As `quick_leakage`, and ``changed``, the names of the columns. None where hypotheticals change everything, nothing, or
        columns that hold more than ten combinations of values (of a single column: amounts).
    """
    X = as_frame(X)
    if not is_changed.any() or is_changed.all():
        return None
    own = _coded(X.loc[:, is_changed])
    codes = own.groupby(list(own.columns), dropna=False).ngroup().to_numpy()
    attribute = Attribute("", codes, np.unique(codes))
    if attribute.n_classes > _FEW:
        if own.shape[1] > 1:
            return None
        attribute = Attribute("", own.iloc[:, 0].to_numpy())
    found = quick_leakage(X.loc[:, ~is_changed], attribute)
    return None if found is None else Bunch(**found, changed=[str(column) for column in own.columns])


def tells(leakage: Bunch | None) -> bool:
    """Whether columns tell a group, or an amount, well beyond chance."""
    return leakage is not None and leakage.get("auc", 0.5 + leakage.get("r2", 0.0)) > _TELLS


def leakage_sentence(leakage: Bunch) -> str:
    """What `leakage_of_others` found, for those who read a certificate."""
    told = f"AUC {leakage.auc:.2f}, chance is 0.5" if "auc" in leakage else f"R^2 {leakage.r2:.2f}, chance is 0"
    columns = ", ".join(leakage.changed)
    if not tells(leakage):
        return f"the hypotheticals change {columns} alone; other columns hardly tell it ({told})"
    return f"the hypotheticals change {columns} alone, and other columns tell it ({told}): what goes with it is not certified"


def _leakage(X: pd.DataFrame, attribute: Attribute, qid, n_folds: int, rng, n_rows=None) -> Bunch | None:
    rows = np.sort(rng.permutation(np.flatnonzero(attribute.is_known))[:n_rows])
    values = attribute.values[rows]
    if not attribute.is_numeric:
        _, codes, members = np.unique(values, return_inverse=True, return_counts=True)
        rows = rows[members[codes] >= n_folds]
        values = np.unique(attribute.values[rows], return_inverse=True)[1]
    if len(rows) < n_folds or values.min() == values.max():
        return None
    seed, table = int(rng.integers(2**31)), _coded(X).to_numpy()[rows]
    kind = KFold if attribute.is_numeric else StratifiedKFold
    splitter = kind(n_folds, shuffle=True, random_state=seed) if qid is None else GroupKFold(n_folds)
    splits = list(splitter.split(table, values, None if qid is None else qid[rows]))
    boosted = {"max_leaf_nodes": 15, "early_stopping": False, "random_state": seed}
    single = {"max_leaf_nodes": 15, "min_samples_leaf": 10, "random_state": seed}

    def told(model, columns) -> float:
        if attribute.is_numeric:
            predicted = np.empty(len(values))
            for train, test in splits:
                predicted[test] = model.fit(table[train][:, columns], values[train]).predict(table[test][:, columns])
            return float(r2_score(values, predicted))
        chance = np.zeros((len(values), int(values.max()) + 1))
        for train, test in splits:
            model.fit(table[train][:, columns], values[train])
            chance[np.ix_(test, model.classes_)] = model.predict_proba(table[test][:, columns])
        return float(np.mean([roc_auc_score(values == k, chance[:, k]) for k in range(chance.shape[1])]))

    if attribute.is_numeric:
        name, nothing = "r2", 0.0
        models = HistGradientBoostingRegressor(**boosted), DecisionTreeRegressor(**single)
    else:
        name, nothing = "auc", 0.5
        models = HistGradientBoostingClassifier(**boosted), DecisionTreeClassifier(**single)
    together = told(models[0], slice(None))
    each = pd.Series([told(models[1], [j]) for j in range(table.shape[1])], index=X.columns, name=name)
    is_joint = together - nothing > _JOINT * max(each.max() - nothing, 0.0) + 0.05
    return Bunch(**{name: together, f"{name}_of_columns": each}, is_joint=bool(is_joint), n_rows=len(values))


def _coded(X: pd.DataFrame) -> pd.DataFrame:
    """Numbers as they are; other values by their place in sorted order, missing ones nan."""

    def coded(column: pd.Series) -> np.ndarray:
        column = column.infer_objects()
        if pd.api.types.is_numeric_dtype(column.dtype):
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        codes = pd.factorize(column.astype(str).where(column.notna()), sort=True)[0]
        return np.where(codes < 0, np.nan, codes)

    return pd.DataFrame({j: coded(X.iloc[:, j]) for j in range(X.shape[1])}).set_axis(X.columns, axis=1)
