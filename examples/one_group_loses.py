"""When the average improves and one group loses: a report that says so.

Two rankings of the same applicants are compared, of which we have nothing but the scores, as of a system in use: a table with a
column for each, and the applicants' own ids as its index. The new one knows the skill of most applicants better, and underrates
those from the south, one applicant in six. Openings belong to firms, so that what is sure rests on the firms.

    python examples/one_group_loses.py [--quick] [--output report.html]
"""

import sys

import numpy as np
import pandas as pd

from skfairrank.inspection import audit_report, impact_ratios

n_openings = 60 if "--quick" in sys.argv else 300
rng, n = np.random.default_rng(0), 10 * n_openings
opening = np.repeat([f"opening {k + 1}" for k in range(n_openings)], 10)
firm = np.repeat([f"firm {k // 5 + 1}" for k in range(n_openings)], 10)
origin = pd.Series(rng.choice(["north", "east", "south"], n, p=[0.5, 1 / 3, 1 / 6]), name="origin")
skill = rng.normal(size=n)
grade = np.digitize(skill, [0.0, 0.7, 1.4])
scores = pd.DataFrame(
    {
        "in use": skill + rng.normal(scale=0.9, size=n),
        "new": skill + rng.normal(scale=0.5, size=n) - 0.7 * (origin == "south").to_numpy(),
    },
    index=[f"A-{k:04d}" for k in rng.permutation(n)],
)

# The page. Its summary tells every difference to the ranking in use that chance does not explain, worse ones before better ones.
report = audit_report(
    scores, y=grade, qid=opening, sensitive_features=origin, reference="in use", clusters=firm, k=5, random_state=0
)
if "--output" in sys.argv:
    report.to_html(sys.argv[sys.argv.index("--output") + 1], title="A new ranking of applicants")

# The same in tables: differences, what wrong labels of the origin would hide, and the ratios that New York City's Local Law 144
# asks for, where the first two of each opening are invited.
told = report.differences.query("p < 0.05").sort_values("p")
print(told[["what", "attribute", "group", "difference", "p", "is_better"]].to_string(index=False))
print(report.wrong_labels.loc["new"].round(3))
print(impact_ratios(scores["new"], qid=opening, sensitive_features={"origin": origin}, k=2).round(2))
