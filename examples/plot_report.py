r"""
How to write a report for those who decide
==========================================

Whoever answers for a ranker wants one page: how good are its lists, would they change if people were of another group, how
sure is that, and what do the numbers not say? ``audit_report`` makes it, of any rankers, and ``to_html`` writes it to a file
that opens without a network and can be printed.

Here applicants are ranked, eight for each opening. The marks of those who come from abroad are lower than their skills, and so
are the grades that they got. Of each applicant the twin is known: the same person, had he come from here, or from abroad.
LightGBM must be installed (``pip install lightgbm``). With ``--output report.html`` the script writes the page.
"""

# %%
# Two rankers: boosted trees, which know nothing of groups, and SenSTIR, which was told in training who comes from where.
import sys

import matplotlib.pyplot as plt
import pandas as pd
from lightgbm import LGBMRanker

from skfairrank import QueryRanker, SenSTIRRanker
from skfairrank.datasets import make_hiring_ranking
from skfairrank.inspection import CertificateDisplay, audit_report

n_train, n_test = (30, 30) if "--quick" in sys.argv else (300, 200)
train, test = (
    make_hiring_ranking(n_train, 8, random_state=0),
    make_hiring_ranking(n_test, 8, random_state=3),
)
names = train.feature_names
X_train, X_test, X_twin = (
    pd.DataFrame(rows, columns=names) for rows in (train.data, test.data, test.twin)
)
trees = LGBMRanker(n_estimators=30, num_leaves=7, random_state=0, n_jobs=1, verbose=-1)
rankers = {
    "boosted trees": QueryRanker(trees).fit(X_train, train.target, qid=train.qid),
    "SenSTIR": SenSTIRRanker(adversary="gaps", rho=0.01, random_state=0).fit(
        X_train,
        train.target,
        qid=train.qid,
        sensitive_features=train.sensitive_features,
    ),
}

# %%
# The page, on openings that no ranker has seen. Names make it readable: of the hypothetical, the groups, the applicants and the
# columns. A notebook, and this gallery, show the report itself.
origin = pd.Series(test.sensitive_features, name="origin").map(
    {0: "from here", 1: "from abroad"}
)
report = audit_report(
    rankers,
    X_test,
    test.target,
    qid=[f"opening {q + 1}" for q in test.qid],
    hypotheticals={"origin exchanged": X_twin},
    sensitive_features=origin,
    item_names=[f"applicant {i % 8 + 1}" for i in range(len(test.target))],
    k=5,
    n_worst=1,
    random_state=0,
)
if "--output" in sys.argv:
    report.to_html(
        sys.argv[sys.argv.index("--output") + 1], title="Two rankers of applicants"
    )
report  # noqa: B018 (a gallery shows what stands last)

# %%
# Its parts are tables to compute with: ``table``, ``certificates``, ``hypotheticals``, ``exposure``, ``gaps`` and
# ``worst_queries()``.
columns = ["qid", "item", "group", "rank", "hypothetical_rank", "unfairness"]
print(report.worst_queries()[columns].head(8).round(2).to_string(index=False))

# %%
# And each certificate can be drawn: openings from the most to the least unfair.
CertificateDisplay(report.certificates["boosted trees"], name="boosted trees").plot()
plt.show()
# sphinx_gallery_thumbnail_path = 'images/report.png'
