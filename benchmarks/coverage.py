"""How often the bounds of fairness certificates hold, and how wide they are: 500 simulated audits of new queries for each row.

Each audit draws its queries anew from one generator. The truth is the mean over 100 000 further queries. Beside it stand the
bound of Hoeffding, and the exact binomial bound where values are 0 or 1.

A second table has queries that come in clusters, with and without weights.

    python benchmarks/coverage.py [--quick]
"""

from __future__ import annotations

import numpy as np
from _tools import arguments, table
from scipy.stats import beta

from skfairrank.inspection import fairness_certificate, upper_confidence_bound

CONFIDENCE = 0.95


class Weights:
    """A linear ranker that was never fitted."""

    def __init__(self, *w):
        self.w = np.array(w)

    def predict(self, X):
        return X @ self.w


def exchange(X):
    """The other sex, and an income that goes with it."""
    X[:, 1] = 1 - X[:, 1]
    X[:, 2] += 0.3 * (2 * X[:, 1] - 1)
    return X


def certificate(ranker, n_queries, n_items, statistic, rng):
    n = n_queries * n_items
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 2, n), rng.normal(size=n)])
    qid = np.repeat(np.arange(n_queries), n_items)
    return fairness_certificate(ranker, X, qid=qid, hypotheticals=exchange, statistic=statistic, confidence=CONFIDENCE)


def row(name, ranker, statistic, n_queries, n_audits, rng):
    truth = certificate(ranker, 100_000, 10, statistic, rng).value
    found = [certificate(ranker, n_queries, 10, statistic, rng) for _ in range(n_audits)]
    values, bounds = (np.array([getattr(each, name) for each in found]) for name in ("value", "upper_bound"))
    hoeffding = np.sqrt(np.log(1 / (1 - CONFIDENCE)) / (2 * n_queries))
    binomial = ""
    if statistic == "top_changed":
        ones = np.round(values * n_queries)
        exact = np.where(ones < n_queries, beta.ppf(CONFIDENCE, ones + 1, np.maximum(n_queries - ones, 1)), 1.0)
        binomial = f"{np.mean(exact - values):.4f}"
    return [
        name,
        statistic,
        str(n_queries),
        f"{truth:.4f}",
        f"{np.mean(bounds >= truth):.3f}",
        f"{np.mean(bounds - values):.4f}",
        binomial,
        f"{hoeffding:.4f}",
    ]


def firm_rows(n_audits, rng):
    """Openings of firms, whose openings are alike; 1 to 30 of each, and weights of firms and of openings.

    What a bound is to cover is the mean over all firms and openings, .2, in the weights of the audit.
    """
    for n_firms in (10, 30, 100):
        found = {name: [] for name in ("neither", "weights", "clusters", "weights and clusters", "one opening each")}
        for _ in range(n_audits):
            sizes = rng.integers(1, 31, n_firms)
            firm = np.repeat(np.arange(n_firms), sizes)
            x = rng.binomial(20, np.repeat(rng.beta(0.5, 2, n_firms), sizes)) / 20
            weight = np.repeat(rng.uniform(0.5, 2, n_firms), sizes) * rng.uniform(0.5, 2, len(x))
            single = rng.beta(0.5, 2, n_firms)
            for name, values, kw in (
                ("neither", x, {}),
                ("weights", x, {"weight": weight}),
                ("clusters", x, {"clusters": firm}),
                ("weights and clusters", x, {"weight": weight, "clusters": firm}),
                ("one opening each", single, {"clusters": np.arange(n_firms)}),
            ):
                bound = upper_confidence_bound(values, CONFIDENCE, **kw)
                if name == "one opening each":
                    assert bound == upper_confidence_bound(values, CONFIDENCE)
                found[name].append((bound, np.average(values, weights=kw.get("weight"))))
        for name, pairs in found.items():
            bounds, means = np.transpose(pairs)
            yield [name, str(n_firms), f"{np.mean(bounds >= 0.2):.3f}", f"{np.mean(bounds - means):.4f}"]


def main():
    n_audits = 100 if arguments(__doc__).quick else 500
    rng, rows = np.random.default_rng(0), []
    for name, ranker in (("nearly fair", Weights(1.0, 0.01, 0.0)), ("unfair", Weights(1.0, 0.4, 0.5))):
        for statistic in ("discordance", "top_changed", "displacement"):
            for n_queries in (30, 100, 400):
                rows.append(row(name, ranker, statistic, n_queries, n_audits, rng))
    head = ["ranker", "statistic", "queries", "truth", "covered", "bound less value", "binomial", "Hoeffding"]
    table(f"Coverage of certificates at {CONFIDENCE:.0%} confidence, {n_audits} audits", head, rows)
    head = ["the bound knows", "firms", "covered", "bound less mean"]
    table(
        f"Openings of firms that are alike, {CONFIDENCE:.0%} confidence, {n_audits} audits",
        head,
        firm_rows(n_audits, rng),
    )


if __name__ == "__main__":
    main()
