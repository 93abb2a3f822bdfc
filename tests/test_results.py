"""The page of results and the scripts that share its systems: they run, and say what they leave out."""

import re
import sys

import numpy as np
import pytest
import scipy.stats
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


def tables(page):
    """Rows of the page's tables, by their first cell."""
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


def test_at_same_ndcg_is_the_line_between_neighbours(examples):
    from _systems import at_same_ndcg

    # Two splits; mean NDCG of the policy, the second column, .5, .7 and .8.
    runs = {
        ("a", 1.0): np.array([[9.0, 0.4, 0.0, 0.1], [9.0, 0.6, 0.0, 0.3]]),
        ("a", 2.0): np.array([[0.0, 0.8, 1.0, 0.3], [0.0, 0.6, 1.0, 0.7]]),
        ("b", None): np.array([[0.0, 0.8, 0.0, 9.0], [0.0, 0.8, 0.0, 9.0]]),
    }
    half_way = at_same_ndcg(runs, ("a",), 0.6)
    assert half_way[:, 1:] == pytest.approx(np.array([[0.6, 0.5, 0.2], [0.6, 0.5, 0.5]]))
    assert at_same_ndcg(runs, ("a",), 0.71) is None and at_same_ndcg(runs, ("a",), 0.4) is None
    assert at_same_ndcg(runs, ("a", "b"), 0.75)[:, 1].mean() == pytest.approx(0.75)


def test_standard_error_is_that_of_the_mean(examples):
    from _systems import plus_minus, standard_error

    values = np.random.default_rng(0).normal(size=(7, 3))
    assert standard_error(values) == pytest.approx(scipy.stats.sem(values, axis=0))
    assert np.isnan(standard_error(values[:1])).all()
    assert plus_minus(0.12345, 0.00678, 3) == "0.123 ±0.007" and plus_minus(1, np.nan, 2) == "1.00"


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
    assert rows["Drop age and sex"][2] == "1.000 ±0.000"  # by construction
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
