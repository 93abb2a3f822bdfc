"""Ranking data in files: the LETOR (svmlight with qid) format as it is found in practice."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch

from skfairrank.datasets._files import file_name, open_binary
from skfairrank.datasets._parameters import check_count

__all__ = ["load_letor"]

LINE = "'relevance qid:id index:value index:value ... # comment'"


def load_letor(
    path, *, n_features: int | None = None, dtype=np.float64, dense: bool = True, zero_based: bool = False
) -> Bunch:
    """Read a ranking data set in LETOR format: one document a line, with its relevance, query id and features.

    Parsing is scikit-learn's (`sklearn.datasets.load_svmlight_file`); the query ids are collected beside it, since its
    own way of collecting them takes time quadratic in the number of lines.

    Parameters
    ----------
    path : str, path-like or file object
        The file, plain or compressed by gzip or bzip2 whatever its name says. A file object is read to its end and left
        open. Carriage returns, trailing blanks, blank and comment lines and a byte order mark are skipped.
    n_features : int, optional
        Number of columns; default: the largest index in the file. Give it where several files belong together, since
        trailing features that no document has are not written.
    dtype : dtype
        Of the features. float32 halves the memory.
    dense : bool
        Whether the features come as an array, or else as a CSR matrix.
    zero_based : bool
        Whether the first feature is number 0. LETOR counts from 1, also where no document has feature 1.

    Returns
    -------
    documents : Bunch
        In the order of the file: ``data`` (n_rows, n_features), zero where a feature is not written; ``target``
        (n_rows,) relevances, ints if all are whole numbers; ``qid`` (n_rows,), ints if all are whole numbers, else
        strings; ``comments`` (n_rows,) the text after #, without blanks around it (None if the file has no comment);
        ``feature_names`` the indices in the file, as strings.

    Raises
    ------
    ValueError
        If the file has no row, a line is not of this form or has no qid (the message gives its number), a relevance is
        negative or not a number, or the file has more than `n_features` features.

    Examples
    --------
    >>> from io import BytesIO
    >>> file = BytesIO(b"2 qid:7 1:0.5 3:1 # page a\\r\\n\\r\\n0 qid:3 2:4  \\r\\n")
    >>> documents = load_letor(file)
    >>> documents.data
    array([[0.5, 0. , 1. ],
           [0. , 4. , 0. ]])
    >>> documents.target.tolist(), documents.qid.tolist(), documents.comments.tolist()
    ([2, 0], [7, 3], ['page a', ''])
    """
    if n_features is not None:
        n_features = check_count(n_features, "n_features")
    name = file_name(path)
    with open_binary(path) as file:
        lines = _Lines(file, name)
        try:
            data, target = load_svmlight_file(lines, n_features=n_features, dtype=dtype, zero_based=bool(zero_based))
        except _NotLetor:
            raise
        except (ValueError, OverflowError) as error:
            if lines.is_read:  # not about one line: too many features, or nothing to read
                raise ValueError(f"{name}: {error}" if lines.qid else _nothing(name)) from error
            raise ValueError(f"{name}, line {lines.number}: not of the form {LINE} ({error}).") from error
    if not lines.qid:
        raise ValueError(_nothing(name))
    _check_relevance(target, name)
    whole = bool((target == np.floor(target)).all()) and target.max() < 2**53
    return Bunch(
        data=data.toarray() if dense else data.tocsr(),
        target=target.astype(np.int64) if whole else target,
        qid=_ids(lines.qid),
        comments=lines.comment_array(),
        feature_names=[str(index) for index in range(1 - bool(zero_based), data.shape[1] + 1 - bool(zero_based))],
    )


class _NotLetor(ValueError):
    """A message that is complete already."""


class _Lines:
    """The lines of a file, for scikit-learn's parser to iterate over; remembers qid and comment of each row."""

    def __init__(self, file, name: str):
        self.file, self.name = file, name
        self.number = 0
        self.is_read = False
        self.qid: list[bytes] = []
        self.comments: dict[int, str] = {}

    def read(self, size=-1):
        # The parser takes for a file what has this method, and never calls it.
        raise io.UnsupportedOperation("these lines can only be iterated over")

    def __iter__(self) -> Iterator[bytes]:
        for line in self.file:
            self.number += 1
            if isinstance(line, str):
                line = line.encode()
            if self.number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            row, _, comment = line.partition(b"#")
            start = row.split(None, 2)
            if not start:
                continue
            if len(start) < 2 or not start[1].startswith(b"qid:") or len(start[1]) == 4:
                raise _NotLetor(
                    f"{self.name}, line {self.number}: no query id after the relevance, but {LINE} is expected. "
                    "Every row needs one; without queries read the file with sklearn.datasets.load_svmlight_file."
                )
            comment = comment.strip()
            if comment:
                self.comments[len(self.qid)] = comment.decode("utf-8", errors="replace")
            self.qid.append(start[1][4:])
            yield row
        self.is_read = True

    def comment_array(self) -> np.ndarray | None:
        if not self.comments:
            return None
        comments = np.full(len(self.qid), "", dtype=object)
        comments[list(self.comments)] = list(self.comments.values())
        return comments


def _ids(qid: list[bytes]) -> np.ndarray:
    texts = np.char.decode(np.array(qid), "utf-8", "backslashreplace")
    try:
        numbers = texts.astype(np.int64)
    except (ValueError, OverflowError):
        return texts.astype(object)
    # 007 and 7, or 1_0 and 10, would be one query.
    return numbers if (numbers.astype(texts.dtype) == texts).all() else texts.astype(object)


def _check_relevance(target: np.ndarray, name: str) -> None:
    if not np.isfinite(target).all():
        row = int(np.flatnonzero(~np.isfinite(target))[0])
        raise ValueError(
            f"{name}: the relevance of row {row} is {target[row]}; it must be a finite number of at least 0."
        )
    negative = np.flatnonzero(target < 0)
    if len(negative):
        raise ValueError(
            f"{name}: {len(negative)} of {len(target)} rows have a negative relevance (the first is row {negative[0]} "
            f"with {target[negative[0]]:g}); relevance must be at least 0. Where it marks unlabelled documents, as in "
            "LETOR's semi-supervised files, leave those lines out."
        )


def _nothing(name: str) -> str:
    return f"{name}: no row in it. Expected are lines of the form {LINE}."
