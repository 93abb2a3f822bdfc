"""Record what trec_eval, gdeval and cwl_eval say of a few queries, through ir_measures, into trec_eval.json beside this file.

Not run by the tests, which read the record. In a virtual environment of its own:

    pip install ir_measures==0.4.3 pytrec_eval-terrier==0.5.11 cwl-eval==1.0.12
    python tests/data/record_trec_eval.py
"""

import json
import random
from importlib.metadata import version
from pathlib import Path

MEASURES = [
    "P@1", "P@5", "P@20", "R@1", "R@5", "R@20", "nDCG", "nDCG@3", "nDCG@20", "RR", "RR@2", "AP", "AP@3",  # trec_eval
    "ERR@1", "ERR@5", "ERR@20",  # gdeval
    "RBP(p=0.5,rel=1)", "RBP(p=0.8,rel=1)",  # cwl_eval
]  # fmt: skip


NOTHING_RELEVANT, ALL_TIED = "201", "202"  # gdeval takes numbers only


def rows():
    """Queries of 1 to 30 rows: (query, document, relevance 0 to 4, score). Documents are shuffled; of the scores some tie."""
    rng = random.Random(1)
    out = []
    for query, size in enumerate((1, 2, 3, 5, 8, 12, 12, 30, 30)):
        zeros = 2 if query % 2 else 8  # few relevant rows in every other query
        out += [
            (str(101 + query), y, round(rng.uniform(-2, 2), 1)) for y in rng.choices([0] * zeros + [1, 2, 3, 4], k=size)
        ]
    out += [(NOTHING_RELEVANT, 0, round(rng.uniform(-2, 2), 1)) for _ in range(4)]
    out += [(ALL_TIED, y, 0.5) for y in (0, 3, 1, 0, 2, 0, 4, 1)]
    documents = rng.sample(range(1000), len(out))
    return [(query, f"d{document:03d}", y, s) for document, (query, y, s) in zip(documents, out, strict=True)]


def main():
    import ir_measures

    data = rows()
    judged = [ir_measures.Qrel(query, document, y) for query, document, y, _ in data]
    run = [ir_measures.ScoredDoc(query, document, s) for query, document, _, s in data]
    values = {name: {} for name in MEASURES}
    for name in MEASURES:
        for metric in ir_measures.iter_calc([ir_measures.parse_measure(name)], judged, run):
            values[name][metric.query_id] = metric.value
    versions = {name: version(name) for name in ("ir_measures", "pytrec_eval-terrier", "cwl-eval")}
    record = {"versions": versions, "rows": data, "values": values}
    text = json.dumps(record, indent=1)
    Path(__file__).with_name("trec_eval.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
