"""Ranking data in LETOR format, and Microsoft Learning to Rank as Bower et al. (2021, Appendix A) prepare it."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.stats
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch, check_array

from skfairrank._checks import check_relevance
from skfairrank._queries import Queries
from skfairrank._random import as_generator
from skfairrank.datasets._generators import check_count, check_number, draw

# The first bytes tell, not the name: downloads are often renamed.
OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open}

LINE = "'relevance qid:id index:value index:value ... # comment'"

_STREAMS = ("body", "anchor", "title", "url", "whole document")
_PER_STREAM = [
    *("covered query term number", "covered query term ratio", "stream length", "IDF(Inverse document frequency)"),
    *(
        f"{statistic} of {counted}"
        for counted in ("term frequency", "stream length normalized term frequency", "tf*idf")
        for statistic in ("sum", "min", "max", "mean", "variance")
    ),
    *("boolean model", "vector space model", "BM25", "LMIR.ABS", "LMIR.DIR", "LMIR.JM"),
]
FEATURE_NAMES = [
    *(f"{feature} {stream}" for feature in _PER_STREAM for stream in _STREAMS),
    *("Number of slash in URL", "Length of URL", "Inlink number", "Outlink number", "PageRank", "SiteRank"),
    *("QualityScore", "QualityScore2", "Query-url click count", "url click count", "url dwell time"),
]

# Positions from 0; the data set's own numbers, which the paper uses, are one higher.
BOOLEAN_MODEL = slice(95, 100)
QUALITY_SCORE, QUALITY_SCORE_2 = 131, 132

DESCR = """\
Microsoft Learning to Rank (Qin and Liu, arXiv:1306.2597), prepared as in "Individually Fair Ranking" (2021).

Feature 132 (QualityScore) is dropped. Features 96 to 100 (Boolean model) are left as they are, the other ones are
standardised by their means and standard deviations on the training part. Sensitive feature: whether a document's
QualityScore2 (feature 133) is high, at least the training part's 40th percentile.
"""


@contextmanager
def open_binary(source) -> Iterator[Any]:
    """A file to read from: `source` itself if it is open already (and then left open), else the file at that path."""
    if hasattr(source, "read"):
        yield source
        return
    with open(source, "rb") as file:
        start = file.read(2)
    with OPENERS.get(start, open)(source, "rb") as file:
        yield file


def file_name(source) -> str:
    """What a message calls `source`."""
    if hasattr(source, "read"):
        return str(getattr(source, "name", "the file"))
    return os.fspath(source)


def read_text(source) -> tuple[str, str]:
    """The whole content of a file, and what a message calls it."""
    with open_binary(source) as file:
        content = file.read()
    text = content if isinstance(content, str) else content.decode("utf-8-sig", errors="replace")
    return text, file_name(source)


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
    check_relevance(target, name=f"{name}: the relevance (lines that -1 marks as unlabelled have to go)")
    whole = bool((target == np.floor(target)).all()) and target.max() < 2**53
    return Bunch(
        data=data.toarray() if dense else data.tocsr(),
        target=target.astype(np.int64) if whole else target,
        qid=_ids(lines.qid),
        comments=np.array(lines.comments, dtype=object) if any(lines.comments) else None,
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
        self.comments: list[str] = []

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
            self.comments.append(comment.strip().decode("utf-8", errors="replace"))
            self.qid.append(start[1][4:])
            yield row
        self.is_read = True


def _ids(qid: list[bytes]) -> np.ndarray:
    texts = np.char.decode(np.array(qid), "utf-8", "backslashreplace")
    try:
        numbers = texts.astype(np.int64)
    except (ValueError, OverflowError):
        return texts.astype(object)
    # 007 and 7, or 1_0 and 10, would be one query.
    return numbers if (numbers.astype(texts.dtype) == texts).all() else texts.astype(object)


def _nothing(name: str) -> str:
    return f"{name}: no row in it. Expected are lines of the form {LINE}."


def make_mslr_ranking(
    train: Bunch,
    validation: Bunch,
    test: Bunch,
    *,
    n_documents: int | None = 20,
    min_documents: int = 20,
    required_relevance: float = 4,
    quality_percentile: float = 40,
    random_state=None,
) -> Bunch:
    """Microsoft Learning to Rank as Bower et al. (2021, Appendix A) prepare it.

    Of each part, queries with at least `min_documents` documents are kept, if one of them has relevance 4; of each such
    query `n_documents` are sampled without replacement, at least one of relevance 4 among them. Whatever is learned
    from data (means, standard deviations, the quality threshold) is learned from the training part alone, from all of its
    documents, and so does not depend on `random_state`.

    Parameters
    ----------
    train, validation, test : Bunch
        What `load_letor` returns for each file; of it ``data`` (136 columns), ``target`` and ``qid`` are used.
    n_documents : int or None
        Documents sampled from each query; None keeps all, so that queries differ in size.
    min_documents : int
        Queries with fewer documents are dropped.
    required_relevance : float
        Queries without a document of at least this relevance are dropped; 0 keeps all.
    quality_percentile : float
        Documents whose QualityScore2 is at least this percentile of the training part (the value that occurs next below
        it) are of high quality.
    random_state : None, int, RandomState or Generator
        Where the random numbers come from; an int makes the data reproducible.

    Returns
    -------
    task : Bunch
        ``train``, ``validation`` and ``test``, each a Bunch of ``data`` (n_rows, 135), ``target``, ``qid``,
        ``sensitive_features`` (bool, true for high quality), ``rows`` (the rows' numbers in what was given, rising) and
        ``n_queries``, a dict of how many were "given", had "too few documents", had "no document of the required
        relevance" (of those with enough documents), and were "kept". Further ``feature_names`` (135,),
        ``sensitive_column`` (131, QualityScore2 in ``data``), ``quality_threshold`` (unscaled), ``DESCR``.

    Raises
    ------
    ValueError
        If a part does not have 136 features, or none of its queries is kept (the message says why), or a parameter is
        out of range.

    Notes
    -----
    The paper samples "until at least one of the 20 sampled web pages has a relevance of 4". Here the number of such
    documents is drawn first, from its hypergeometric distribution given that it is not 0: the same distribution, and no
    loop that may take long where a query has many documents. Sampled documents stay in their given order.

    The authors' program differs from their text: it redraws only samples without any relevant document, so relevance 4
    may be missing, and it standardises each part by the means and deviations of its own sampled documents. On the sampled
    documents alone these are unsteady, since some features (link counts, clicks) have very long tails.

    A feature that is constant on the training part is centred and not scaled.

    References
    ----------
    Bower, Eftekhari, Yurochkin, Sun: Individually Fair Ranking, ICLR 2021.

    Qin, Liu: Introducing LETOR 4.0 Datasets, arXiv:1306.2597.
    """
    min_documents = check_count(min_documents, "min_documents")
    if n_documents is not None:
        n_documents = check_count(n_documents, "n_documents")
        if n_documents > min_documents:
            raise ValueError(
                f"n_documents={n_documents} cannot be sampled from queries of min_documents={min_documents}: "
                "raise min_documents, or give n_documents=None to keep all documents."
            )
    required_relevance = check_number(required_relevance, "required_relevance")
    quality_percentile = check_number(quality_percentile, "quality_percentile", low=0, high=100)
    generator = as_generator(random_state)

    parts = {
        name: _select(name, part, n_documents, min_documents, required_relevance, generator)
        for name, part in {"train": train, "validation": validation, "test": test}.items()
    }
    fitted_on = _dense(train.data)
    scaler = StandardScaler(copy=False).fit(fitted_on)
    scaler.mean_[BOOLEAN_MODEL], scaler.scale_[BOOLEAN_MODEL] = 0, 1
    threshold = np.percentile(fitted_on[:, QUALITY_SCORE_2], quality_percentile, method="lower")
    for part in parts.values():
        part.sensitive_features = part.data[:, QUALITY_SCORE_2] >= threshold
        part.data = np.delete(scaler.transform(part.data), QUALITY_SCORE, axis=1)
    names = [name for name in FEATURE_NAMES if name != FEATURE_NAMES[QUALITY_SCORE]]
    return Bunch(
        **parts,
        feature_names=names,
        sensitive_column=names.index(FEATURE_NAMES[QUALITY_SCORE_2]),
        quality_threshold=float(threshold),
        DESCR=DESCR,
    )


def _select(
    name: str, part: Bunch, n_documents: int | None, min_documents: int, required_relevance: float, generator
) -> Bunch:
    """The rows of one part that stay, as they were given."""
    data = check_array(part.data, accept_sparse="csr", dtype=(np.float64, np.float32), input_name=f"{name}.data")
    if data.shape[1] != len(FEATURE_NAMES):
        raise ValueError(
            f"{name}.data has {data.shape[1]} features, but Microsoft Learning to Rank has {len(FEATURE_NAMES)}. "
            f"Where trailing ones are absent in the file: load_letor(path, n_features={len(FEATURE_NAMES)})."
        )
    queries = Queries.from_qid(part.qid, data.shape[0], name=f"{name}.qid")
    target = np.asarray(part.target)
    if target.shape != (data.shape[0],):
        raise ValueError(
            f"{name}.target has shape {target.shape}: give one relevance for each of {data.shape[0]} rows."
        )
    is_required, enough = target >= required_relevance, queries.sizes >= min_documents
    relevant = np.logical_or.reduceat(queries.group(is_required), queries.offsets[:-1])
    selected = [queries.rows(k) for k in np.flatnonzero(enough & relevant).tolist()]
    if n_documents is not None:
        selected = [
            _sample(rows[is_required[rows]], rows[~is_required[rows]], n_documents, generator) for rows in selected
        ]
    n_small, n_irrelevant = int((~enough).sum()), int((enough & ~relevant).sum())
    n_queries = {
        "given": queries.n_queries,
        "too few documents": n_small,
        "no document of the required relevance": n_irrelevant,
        "kept": len(selected),
    }
    if not selected:
        raise ValueError(
            f"{name}: none of {queries.n_queries} queries is kept: {n_small} have fewer than min_documents="
            f"{min_documents} documents, {n_irrelevant} others none of required_relevance={required_relevance:g}. "
            "Lower one of the two."
        )
    rows = np.sort(np.concatenate(selected))
    return Bunch(
        data=_dense(data[rows]).astype(np.float64, copy=False),
        target=target[rows],
        qid=np.asarray(part.qid)[rows],
        rows=rows,
        n_queries=n_queries,
    )


def _dense(data) -> np.ndarray:
    return data.toarray() if hasattr(data, "toarray") else np.asarray(data)


def _sample(required: np.ndarray, others: np.ndarray, n_documents: int, generator) -> np.ndarray:
    """A uniformly drawn subset of `n_documents` among those that have at least one of `required`."""
    n_all = len(required) + len(others)
    counts = np.arange(max(1, n_documents - len(others)), min(len(required), n_documents) + 1)
    n_required = draw(generator, counts, scipy.stats.hypergeom.logpmf(counts, n_all, len(required), n_documents))
    return np.concatenate(
        [
            generator.choice(required, size=n_required, replace=False),
            generator.choice(others, size=n_documents - n_required, replace=False),
        ]
    )
