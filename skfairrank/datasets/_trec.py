"""Rankings as other tools write them: TREC runs with judgements, and LightGBM's sizes of queries."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skfairrank._checks import check_relevance, check_scores
from skfairrank.datasets._letor import file_name, read_text

_RUN = ["qid", "iteration", "item", "rank", "score", "run"]
_QRELS = ["qid", "iteration", "item", "relevance"]


def load_trec_run(run, qrels=None) -> Bunch:
    """Read a ranking as trec_eval takes it, with the relevances of what it ranks.

    Parameters
    ----------
    run : str, path-like or file object
        Lines of ``qid Q0 item rank score run``, plain or compressed by gzip or bzip2. Ranks are not read: as for trec_eval,
        scores tell the order.
    qrels : str, path-like or file object, optional
        Lines of ``qid 0 item relevance``. What is not judged has relevance 0; so have negative judgements.

    Returns
    -------
    ranking : Bunch
        In the order of the run ``scores``, ``qid`` and ``items`` (n_rows,), the latter two as texts, and ``name``, that of the
        run. With `qrels` also ``target`` (n_rows,), ``is_judged`` (n_rows,), and ``n_missing``: how many items of positive
        relevance are judged and not in the run. trec_eval's NDCG counts these in the ideal list; metrics of this package see the
        rows that are there.

    Raises
    ------
    ValueError
        If a line is not of this form, an item is twice in a query, or no item of the run is judged (the message says so).

    Examples
    --------
    >>> from io import StringIO
    >>> from skfairrank.datasets import load_trec_run
    >>> run = StringIO("q1 Q0 d3 1 0.9 bm25\\nq1 Q0 d1 2 0.4 bm25\\n")
    >>> found = load_trec_run(run, StringIO("q1 0 d1 2\\nq1 0 d7 1\\n"))
    >>> found.scores.tolist(), found.target.tolist(), found.n_missing
    ([0.9, 0.4], [0, 2], 1)
    """
    rows = _read(run, _RUN, "score")
    found = Bunch(qid=rows["qid"].to_numpy(object), items=rows["item"].to_numpy(object), name=rows["run"].iloc[0])
    found.scores = check_scores(rows["score"], name=f"{file_name(run)}: scores")
    if qrels is None:
        return found
    judged = _read(qrels, _QRELS, "relevance").set_index(["qid", "item"])["relevance"].clip(lower=0)
    pairs = pd.MultiIndex.from_frame(rows[["qid", "item"]])
    relevance = judged.reindex(pairs)
    if relevance.isna().all():
        raise ValueError(
            f"{file_name(qrels)} judges no item of {file_name(run)}: ids such as {pairs[0]} there, {judged.index[0]} here."
        )
    target = check_relevance(relevance.fillna(0.0), name=f"{file_name(qrels)}: relevances")
    whole = bool((target == np.floor(target)).all())
    n_missing = int((judged[~judged.index.isin(pairs)] > 0).sum())
    is_judged = relevance.notna().to_numpy()
    target = target.astype(np.int64) if whole else target
    return Bunch(**found, target=target, is_judged=is_judged, n_missing=n_missing)


def load_query_sizes(path) -> np.ndarray:
    """Read the sizes of queries as LightGBM keeps them beside its data, in a file ``train.txt.query`` or ``train.txt.group``.

    Parameters
    ----------
    path : str, path-like or file object
        One size a line, of consecutive rows.

    Returns
    -------
    qid : ndarray of int, shape (n_rows,)
        One id per row, from 0.

    Raises
    ------
    ValueError
        If a line is not a whole number above 0.

    Examples
    --------
    >>> from io import StringIO
    >>> from skfairrank.datasets import load_query_sizes
    >>> load_query_sizes(StringIO("2\\n3\\n")).tolist()
    [0, 0, 1, 1, 1]
    """
    text, name = read_text(path)
    sizes = text.split()
    wrong = [size for size in sizes if not (size.isascii() and size.isdigit() and int(size) > 0)]
    if wrong or not sizes:
        raise ValueError(f"{name}: {(wrong or ['an empty file'])[0]!r} is no size of a query, a whole number above 0.")
    return np.repeat(np.arange(len(sizes)), np.array(sizes, dtype=np.int64))


def _read(source, columns: list[str], number: str) -> pd.DataFrame:
    """A file of columns that are separated by blanks, the column `number` as floats."""
    text, name = read_text(source)
    lines = [line.split() for line in text.splitlines() if line.strip()] or [["an empty file"]]
    for fields in lines:
        if len(fields) != len(columns):
            raise ValueError(f"{name}: {' '.join(fields)!r} is not of the form {' '.join(columns)!r}.")
    table = pd.DataFrame(lines, columns=columns)
    table[number] = pd.to_numeric(table[number], errors="coerce")
    wrong = np.flatnonzero(table[number].isna() | table.duplicated(["qid", "item"]))
    if len(wrong):
        raise ValueError(
            f"{name}: {' '.join(lines[wrong[0]])!r} has no number as {number}, or its item is there twice."
        )
    return table
