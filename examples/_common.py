"""What the scripts here share: options, data files, the synthetic task, tables of numbers, saving a figure."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch

from skfairrank import SensitiveSubspaceMetric
from skfairrank.datasets import make_biased_ranking
from skfairrank.inspection import nearest_queries
from skfairrank.metrics import group_exposure_disparity, kendall_tau_score, stochastic_ndcg_score

# Of the synthetic task: Tables 2 and 3, with the learning rate of the authors' notebook where the paper's text, .001,
# is too small for the published weights; subspace_init from their program.
SYNTHETIC_TRAINING = {"learning_rate": 0.04, "max_iter": 2000, "batch_size": 1, "n_samples": 10}
SYNTHETIC_ATTACK = {
    "epsilon": 0.001,
    "subspace_step_size": 0.001,
    "subspace_n_steps": 20,
    "subspace_init": 0.05,
    "full_step_size": 0.001,
    "full_n_steps": 20,
    "fair_start": 0.0,
}
SYNTHETIC_FAIR_PG = {"learning_rate": 0.1, "max_iter": 500, "batch_size": 1, "n_samples": 10}  # 5 passes of 100 queries

# What the authors' program recorded on the synthetic task (github.com/UMich-FATML/SenSTIR, folder synthetic_data): the
# learned weights; on the test queries NDCG and group exposure disparity from 10 sampled rankings each, Kendall's tau
# with the nearest other query, and the mean place (from 0) in the hypothetical ranking of the item ranked 1st, ..., 10th.
RECORDED = {
    "Baseline": Bunch(
        coef=(8.08121395, 5.38915491),
        ndcg=0.9599,
        tau=0.4000,
        disparity=0.0130,
        places=(2.34, 2.68, 2.94, 3.19, 4.45, 4.79, 5.35, 6.01, 6.29, 6.96),
    ),
    "Fair-PG-Rank, weight 25": Bunch(
        coef=(0.90663069, 0.91267276),
        ndcg=0.8751,
        tau=0.2249,
        disparity=0.0093,
        places=(3.13, 3.51, 3.72, 3.92, 4.59, 4.40, 5.11, 4.91, 5.49, 6.22),
    ),
    "SenSTIR, rho 0.0003": Bunch(
        coef=(3.87103963, 1.03512478),
        ndcg=0.9256,
        tau=0.7058,
        disparity=0.0080,
        places=(0.99, 1.38, 2.10, 3.26, 3.92, 4.90, 5.95, 6.58, 7.82, 8.10),
    ),
    "SenSTIR, rho 0.001": Bunch(
        coef=(7.48849058, 0.23702028),
        ndcg=0.9003,
        tau=0.9511,
        disparity=0.0114,
        places=(0.17, 0.93, 2.00, 3.09, 3.95, 4.98, 6.05, 6.98, 7.91, 8.94),
    ),
}


def options(description: str, add=None) -> argparse.Namespace:
    """Command line options; `add` is called with the parser, to add a script's own."""
    parser = argparse.ArgumentParser(description=description.strip().partition("\n")[0])
    parser.add_argument("--output", type=Path, metavar="PNG", help="where to save the figure (the script's name)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help="as large as in the paper")
    size.add_argument("--quick", action="store_true", help="tiny: a test that all runs, numbers without meaning")
    if add is not None:
        add(parser)
    return parser.parse_args()


def data_folder() -> Path:
    """The folder that SKFAIRRANK_DATA names, else shared/data beside the project."""
    return Path(os.environ.get("SKFAIRRANK_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def first_file(names, absent: str) -> Path | None:
    """The first of these files that is at hand; None, after saying what is absent and needed, where there is none."""
    for name in names:
        if (data_folder() / name).is_file():
            return data_folder() / name
    print(
        f"Nothing is drawn: {absent} is at hand. Put {' or '.join(names)} into {data_folder()}, or name another "
        "folder by the environment variable SKFAIRRANK_DATA."
    )
    return None


def synthetic_task() -> Bunch:
    """The paper's synthetic task: the very queries of its figures where that file is at hand, else new ones.

    ``train`` and ``test``, each with X, y, qid, groups; the fitted fair ``metric``; ``X_hypothetical``, the nearest
    other query of each test query among all; ``distance`` of the two.
    """
    file = data_folder() / "senstir_synthetic.npz"
    if file.is_file():
        with np.load(file) as arrays:
            sides = {
                side: Bunch(
                    X=arrays[f"X_{side}"],
                    y=arrays[f"y_{side}"],
                    qid=arrays[f"qid_{side}"] + (100 if side == "test" else 0),
                    groups=arrays[f"majority_{side}"],
                )
                for side in ("train", "test")
            }
        print("Queries: those on which the authors' program was run.")
    else:
        made = make_biased_ranking(n_queries=200, random_state=0)
        sides = {
            side: Bunch(
                X=made.data[rows], y=made.target[rows], qid=made.qid[rows], groups=made.sensitive_features[rows]
            )
            for side, rows in {"train": made.qid < 100, "test": made.qid >= 100}.items()
        }
        print(f"Queries: new ones, since there is no {file.name} in {data_folder()}; recorded numbers need not match.")
    train, test = sides["train"], sides["test"]
    metric = SensitiveSubspaceMetric(classifier=LogisticRegression(C=100))
    metric.fit(train.X, sensitive_features=train.groups)
    X_all, qid_all = np.vstack([train.X, test.X]), np.concatenate([train.qid, test.qid])
    nearest = nearest_queries(test.X, X_all, qid=test.qid, qid_reference=qid_all, metric=metric)
    return Bunch(
        train=train,
        test=test,
        metric=metric,
        X_hypothetical=nearest.hypothetical(X_all),
        distance=nearest.distance,
    )


def judge(scores, hypothetical_scores, y, *, qid, groups) -> np.ndarray:
    """Expected NDCG, Kendall's tau with the hypothetical ranking, group exposure disparity; without sampling."""
    return np.array(
        [
            stochastic_ndcg_score(y, scores, qid=qid, n_samples="exact"),
            kendall_tau_score(scores, hypothetical_scores, qid=qid),
            group_exposure_disparity(y, scores, qid=qid, sensitive_features=groups, n_samples="exact"),
        ]
    )


def standard_error(values) -> np.ndarray:
    """Of the mean over the first axis; nan where there is one value only."""
    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.std(values, axis=0, ddof=1) / np.sqrt(len(values))


def plus_minus(mean, error, digits: int) -> str:
    """A number and its standard error, where there is one."""
    return f"{mean:.{digits}f}" + ("" if np.isnan(error) else f" ±{error:.{digits}f}")


def table(header, rows) -> str:
    """Text with aligned columns."""
    cells = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(line, widths)).rstrip() for line in cells]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


AUDITED = {"ndcg": 3, "tau": 3, "disparity": 4}  # columns of an audit, and their digits


def audit_table(title: str, report) -> str:
    """What `skfairrank.inspection.audit` found, with standard errors over queries."""
    rows = [
        (name, *(plus_minus(row[column], row[f"{column}_se"], digits) for column, digits in AUDITED.items()))
        for name, row in report.iterrows()
    ]
    return table((title, "NDCG", "tau", "disparity"), rows)


def say(message: str) -> None:
    """A line about progress, not among the results."""
    print(message, file=sys.stderr, flush=True)


def step_back(display) -> None:
    """Error bars of a trade-off paler than its points, and numbers in the colour of the line to which they belong."""
    colors = {tuple(point): line[0].get_color() for line in display.lines_.values() for point in line[0].get_xydata()}
    for line in display.lines_.values():
        for part in (*line[1], *line[2]):
            part.set_alpha(0.4)
    for text in display.texts_:
        text.set_color(colors[tuple(text.xy)])


def save(figure, given: argparse.Namespace) -> None:
    """Save a figure where `--output` says, else under the script's name in the current directory."""
    if "sphinx_gallery" in sys.modules:  # shows open figures by itself
        return
    path = given.output or Path(Path(sys.argv[0]).stem + ".png")
    figure.savefig(path, dpi=100)
    print(f"Figure: {path.resolve()}")
