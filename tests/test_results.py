"""The page of results and the scripts that share its systems: they run, and say what they leave out."""

import re
import runpy
import sys

import numpy as np
import pytest
from _data import ROOT, shared_data

EXAMPLES = ROOT / "examples"


@pytest.fixture
def examples(monkeypatch):
    """The folder on the path, as when Python runs a script; its modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield EXAMPLES
    for name in {path.stem for path in EXAMPLES.glob("*.py")} & set(sys.modules):
        del sys.modules[name]


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    (tmp_path / "nothing").mkdir()
    monkeypatch.setenv("SKFAIRRANK_DATA", str(tmp_path / "nothing"))


@pytest.fixture
def run(examples, tmp_path, monkeypatch, capsys):
    """Runs a script of the gallery with ``--quick``; what it printed, and its variables."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")

    def run_script(name):
        path = examples / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(path), "--quick", "--output", str(tmp_path / "figure.png")])
        variables = runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out, variables

    yield run_script
    plt.close("all")


def legends_cover_nothing():
    import matplotlib.pyplot as plt

    for number in plt.get_fignums():
        figure = plt.figure(number)
        figure.canvas.draw()
        boxes = [ax.get_window_extent() for ax in figure.axes]
        legends = figure.legends + [ax.get_legend() for ax in figure.axes if ax.get_legend()]
        assert legends
        for legend in legends:
            assert not any(legend.get_window_extent().overlaps(box) for box in boxes)
        assert all(ax.get_xlabel() and ax.get_ylabel() for ax in figure.axes)
    return len(plt.get_fignums())


def tables(page):
    """Rows of the page's tables, by their first cell."""
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


def test_at_same_ndcg_is_the_line_between_neighbours(examples):
    from _systems import at_same_ndcg

    # Two splits; mean NDCG .5, .7 and .8.
    runs = {
        ("a", 1.0): np.array([[0.4, 0.0, 0.1], [0.6, 0.0, 0.3]]),
        ("a", 2.0): np.array([[0.8, 1.0, 0.3], [0.6, 1.0, 0.7]]),
        ("b", None): np.array([[0.8, 0.0, 9.0], [0.8, 0.0, 9.0]]),
    }
    half_way = at_same_ndcg(runs, ("a",), 0.6)
    assert half_way == pytest.approx(np.array([[0.6, 0.5, 0.2], [0.6, 0.5, 0.5]]))
    assert at_same_ndcg(runs, ("a",), 0.71) is None and at_same_ndcg(runs, ("a",), 0.4) is None
    assert at_same_ndcg(runs, ("a", "b"), 0.75)[:, 0].mean() == pytest.approx(0.75)


def test_claims_need_two_standard_errors(examples):
    """Mean 1: of (0, 1, 2) with error .577, of (-9, 1, 11) with error 5.77."""
    from results import claims_table

    rows = tables(
        claims_table([("clear", [0.9, 1.0, 1.1], 1), ("vague", [-9, 1, 11], 1), ("not", [-0.9, -1, -1.1], 1)])
    )
    assert rows["clear"] == ["1.0 ±0.1", "shows"]
    assert rows["vague"] == ["1.0 ±5.8", "not seen"]
    assert rows["not"] == ["-1.0 ±0.1", "**reversed**"]


@pytest.mark.slow
def test_page_of_results(examples, tmp_path, capsys):
    for name in ("senstir_synthetic.npz", "german.data.gz", "mslr_sample_train.txt.gz"):
        shared_data(name)
    import results

    results.main(["--quick", "--output", str(tmp_path / "results.md")])
    page = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert re.findall(r"^##+ (.*)$", page, re.MULTILINE) == [
        "Synthetic task",
        "The paper's own queries",
        "German Credit",
        "Microsoft Learning to Rank, a sample",
    ]
    assert "Left out" not in page and not re.search(r"\bnan\b|\{|\}", page)
    rows = tables(page)
    assert rows["SenSTIR, rho 0.001"][1] == "0.9003" and rows["SenSTIR, rho 0.001"][4] == "0.9511"
    assert rows["SenSTIR, rho 0.001"][2] == "0.9025"  # checks/test_04_exact.py: .9025117 without sampling
    assert rows["Drop age and sex"][1] == "1.000 ±0.000"  # by construction
    for name in (
        "Random",
        "Baseline",
        "Project",
        "Fair-PG-Rank, weight 4",
        "SenSTIR, box relaxed, rho 0.5, relax 0.88",
    ):
        assert len(rows[name]) >= 3, name


def test_page_without_data_has_the_synthetic_task_alone(examples, no_data, tmp_path, capsys):
    import results

    results.main(["--quick", "--output", str(tmp_path / "results.md")])
    page = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert page.count("Left out") == 3 and "| Baseline |" in page
    assert capsys.readouterr().err.count("SKFAIRRANK_DATA") == 3


@pytest.mark.slow
def test_exact_adversaries_on_both_tasks(run, tmp_path):
    shared_data("german.data.gz")
    text, variables = run("plot_exact_adversaries")
    assert set(variables["comparisons"]) == {"German Credit", "Synthetic task"}
    for name in ("Baseline", "SenSTIR, ascent, rho 1", "SenSTIR, box, rho 0.5", "Drop age and sex", "Drop z2"):
        assert re.search(rf"^{re.escape(name)}  +0\.\d+ ±", text, re.MULTILINE), name
    assert legends_cover_nothing() == 1 and (tmp_path / "figure.png").exists()


def test_exact_adversaries_without_german_credit(run, no_data):
    text, variables = run("plot_exact_adversaries")
    assert "German Credit is left out" in text and set(variables["comparisons"]) == {"Synthetic task"}
    assert legends_cover_nothing() == 1


@pytest.mark.slow
def test_search_holds_people_out(run):
    shared_data("german.data.gz")
    text, variables = run("plot_search_german_credit")
    train, test, search = variables["train"], variables["test"], variables["search"]
    people = [set(map(tuple, part.X.astype(str).to_numpy())) for part in (train, test)]
    assert len(train.y) == 2000 and len(test.y) == 1000
    # Some of the 1000 people are alike in all nine features, hardly more than that occurs on both sides.
    assert len(people[0] & people[1]) < 0.05 * len(people[1])
    folds = list(search.cv.split(train.X, qid=train.qid))
    sides = [set(map(tuple, train.X.iloc[rows].astype(str).to_numpy())) for rows in folds[0]]
    assert len(sides[0] & sides[1]) < 0.05 * len(sides[1])
    assert text.count("unseen people") == 2 and "chosen less plain" in text
    assert legends_cover_nothing() == 1


def test_search_without_data(run, no_data):
    text, _ = run("plot_search_german_credit")
    assert "german.data" in text and "SKFAIRRANK_DATA" in text


def test_lightgbm_beside_senstir(run):
    pytest.importorskip("lightgbm")
    text, variables = run("plot_lightgbm_search")
    assert re.search(r"^LightGBM, 5 trees  +0\.\d+ ±", text, re.MULTILINE) and "SenSTIR, rho 0.001" in text
    assert np.isfinite(variables["search"].cv_results_["mean_test_tau"]).all()
    assert legends_cover_nothing() == 1
