"""Microsoft Learning to Rank with the preprocessing of Bower et al. (2021), Section 4.3 and Appendix A."""

from __future__ import annotations

import numpy as np
import scipy.stats
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch, check_array

from skfairrank._queries import Queries
from skfairrank._random import as_generator
from skfairrank.datasets._parameters import check_count, check_number

__all__ = ["make_mslr_ranking"]

_STREAMS = ["body", "anchor", "title", "url", "whole document"]
_PER_STREAM = [
    "covered query term number",
    "covered query term ratio",
    "stream length",
    "IDF(Inverse document frequency)",
    *[f"{statistic} of term frequency" for statistic in ("sum", "min", "max", "mean", "variance")],
    *[
        f"{statistic} of stream length normalized term frequency"
        for statistic in ("sum", "min", "max", "mean", "variance")
    ],
    *[f"{statistic} of tf*idf" for statistic in ("sum", "min", "max", "mean", "variance")],
    "boolean model",
    "vector space model",
    "BM25",
    "LMIR.ABS",
    "LMIR.DIR",
    "LMIR.JM",
]
FEATURE_NAMES = [f"{feature} {stream}" for feature in _PER_STREAM for stream in _STREAMS] + [
    "Number of slash in URL",
    "Length of URL",
    "Inlink number",
    "Outlink number",
    "PageRank",
    "SiteRank",
    "QualityScore",
    "QualityScore2",
    "Query-url click count",
    "url click count",
    "url dwell time",
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
    n_small = n_irrelevant = 0
    selected = []
    for k in range(queries.n_queries):
        rows = queries.rows(k)
        required = target[rows] >= required_relevance
        if len(rows) < min_documents:
            n_small += 1
        elif not required.any():
            n_irrelevant += 1
        elif n_documents is None:
            selected.append(rows)
        else:
            selected.append(_sample_documents(rows[required], rows[~required], n_documents, generator))
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


def _sample_documents(required: np.ndarray, others: np.ndarray, n_documents: int, generator) -> np.ndarray:
    """A uniformly drawn subset of `n_documents` among those that have at least one of `required`."""
    n_all = len(required) + len(others)
    counts = np.arange(max(1, n_documents - len(others)), min(len(required), n_documents) + 1)
    log_probability = scipy.stats.hypergeom.logpmf(counts, n_all, len(required), n_documents)
    probability = np.exp(log_probability - log_probability.max())
    n_required = generator.choice(counts, p=probability / probability.sum())
    return np.concatenate(
        [
            generator.choice(required, size=n_required, replace=False),
            generator.choice(others, size=n_documents - n_required, replace=False),
        ]
    )
