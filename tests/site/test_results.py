"""The page of results and the scripts that share its systems: they run, and say what they leave out."""

import re
import sys

import numpy as np
import pytest
import scipy.stats
from _data import ROOT, shared_data
from sklearn.utils import Bunch

pytestmark = pytest.mark.once

EXAMPLES = ROOT / "examples"


@pytest.fixture
def examples(monkeypatch):
    """The folder on the path, as when Python runs a script; its modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield EXAMPLES
    for name in {path.stem for path in EXAMPLES.glob("*.py")} & set(sys.modules):
        del sys.modules[name]


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


def test_what_is_judged_on_people(examples):
    """By counting, and by scikit-learn; the third query has no relevant row, and rows of a query do not lie together."""
    from _people import PeopleExperiment, judge_people
    from paper import Side
    from sklearn.metrics import ndcg_score

    from skfairrank import SensitiveSubspaceMetric

    rng = np.random.default_rng(0)
    qid, X, twin = rng.permutation(np.repeat([7, 3, 5], 6)), rng.normal(size=(18, 1)), rng.normal(size=(18, 1))
    y, merit, majority = (
        rng.integers(0, 2, 18).astype(float),
        rng.integers(0, 2, 18).astype(float),
        rng.random(18) < 0.6,
    )
    y[qid == 5] = 0
    side = Side(X, y, qid, majority)
    experiment = PeopleExperiment("", side, side, twin, SensitiveSubspaceMetric(), {}, {}, merit=merit)

    class First:
        def predict(self, X):
            return X[:, 0]

    ndcg, policy, tau, gap, sharp, true = judge_people(experiment, First()).values()
    s, queries = X[:, 0], [qid == q for q in (3, 5, 7)]

    def sorted_ndcg(of):
        return np.mean([ndcg_score([of[q]], [s[q]]) for q in queries if of[q].any()])

    assert ndcg == pytest.approx(sorted_ndcg(y)) and true == pytest.approx(sorted_ndcg(merit))
    assert tau == pytest.approx(np.mean([scipy.stats.kendalltau(s[q], twin[q, 0])[0] for q in queries]))
    exposure = np.array([1 / np.log2(1 + sum(s[j] >= s[i] for j in range(18) if qid[j] == qid[i])) for i in range(18)])
    assert gap == pytest.approx(exposure[~majority].mean() - exposure[majority].mean())
    assert 0 < policy < 1 and abs(sharp) < 1


def test_policies_are_compared_where_they_lose_as_much(examples):
    """Two scales of the same scores are one policy then, that of the temperature at which .01 of NDCG is lost."""
    from _people import policy_gap
    from _systems import LOSS, judge, sharpened
    from paper import synthetic_experiment

    from skfairrank.metrics import group_exposure_disparity, ndcg_score, stochastic_ndcg_score

    experiment = synthetic_experiment(0)
    test = experiment.test

    class Sum:
        def __init__(self, factor):
            self.factor = factor

        def predict(self, X):
            return self.factor * X.sum(axis=1)

    sharp, other = (sharpened(Sum(factor), test) for factor in (1.0, 30.0))
    np.testing.assert_allclose(sharp, other, rtol=1e-6)
    expected = ndcg_score(test.y, sharp, qid=test.qid) - LOSS
    assert stochastic_ndcg_score(test.y, sharp, qid=test.qid, n_samples="exact") == pytest.approx(expected, abs=1e-8)
    numbers = judge(experiment, Sum(30.0))
    groups = {"qid": test.qid, "sensitive_features": test.groups}
    expected = group_exposure_disparity(test.y, sharp, n_samples="exact", **groups)
    assert numbers["sharp_disparity"] == pytest.approx(expected, rel=1e-5) != numbers["stochastic_disparity"]
    assert sharpened(Sum(-1.0), test) is None  # worse than chance

    two, group = np.array([np.log(3), 0.0]), np.array([True, False])
    assert policy_gap(two, [0, 0], group, n_samples="exact") == pytest.approx(0.5 * (1 - 1 / np.log2(3)))


def test_group_mean_residuals_are_those_of_fairlearn(examples):
    preprocessing = pytest.importorskip("fairlearn.preprocessing")
    from _rules import People, less_group_mean

    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 50)
    X, new, new_group = rng.normal(size=(50, 3)) + group[:, None], rng.normal(size=(7, 3)), rng.integers(0, 2, 7)
    remover = preprocessing.CorrelationRemover(sensitive_feature_ids=[3]).fit(np.column_stack([X, group]))
    train = People(X, group, group, group, X)
    for values, groups, ours in (
        (X, group, less_group_mean(X, train)),
        (new, new_group, less_group_mean(new, train, new_group)),
    ):
        theirs = remover.transform(np.column_stack([values, groups]))
        np.testing.assert_allclose(ours - ours[:1], theirs - theirs[:1], atol=1e-10)  # up to a constant


def test_no_one_of_the_census_is_in_training_and_test(examples):
    """Columns of training people are standardised; a twin differs in sex and spouse alone."""
    from _people import census_experiment

    from skfairrank.datasets import load_census_income

    people = load_census_income(shared_data("adult.csv.gz"))
    numbered = Bunch(**people)
    numbered["target"] = np.arange(len(people.target))  # who they are
    task = census_experiment(numbered, 0)
    assert not set(task.train.y) & set(task.test.y)
    rows = task.test.y.astype(int)
    np.testing.assert_array_equal(task.test.X[:, 5:], people.data.iloc[rows, 5:])
    np.testing.assert_array_equal(task.X_hypothetical[:, 5:], people.twin.iloc[rows, 5:])
    np.testing.assert_array_equal(task.X_hypothetical[:, :5], task.test.X[:, :5])
    assert (
        np.abs(task.train.X[:, :5].mean(axis=0)).max() < 0.1 and np.abs(task.train.X[:, :5].std(axis=0) - 1).max() < 0.1
    )
    np.testing.assert_array_equal(task.train.groups, people.sensitive_features[task.train.y.astype(int)] == 0)
    dropped, of_sex = task.drops["Drop sex, relationship and marital status"], task.drops["Drop sex"]
    assert [people.feature_names[k] for k in of_sex] == ["sex_Female", "sex_Male"]
    assert len(dropped) == people.family.sum() and set(of_sex) < set(dropped)


@pytest.mark.slow
def test_page_of_results(examples, tmp_path, capsys):
    needed = ("senstir_synthetic.npz", "german.data.gz", "mslr_sample_train.txt.gz", "adult.csv.gz")
    for name in (*needed, "lightgbm_rank_train.letor.txt.gz"):
        shared_data(name)
    import results

    results.main(["--quick", "--output", str(tmp_path)])
    page = "\n".join(path.read_text(encoding="utf-8") for path in sorted(tmp_path.rglob("*.md")))
    assert (tmp_path / "images" / "results.png").stat().st_size > 10_000
    assert "Left out" not in page and not re.search(r"\bnan\b|\{(?!toctree)|(?<!toctree)\}", page)
    rows = tables(page)
    # NDCG sorted and of the policy, recorded, of the recorded weights, tau, recorded.
    assert rows["SenSTIR, rho 0.001"][2] == "0.9003" and rows["SenSTIR, rho 0.001"][5] == "0.9511"
    assert rows["SenSTIR, rho 0.001"][3] == "0.9025"  # checks/test_04_exact.py: .9025117 without sampling
    assert rows["Drop age and sex"][2] == "1.000 ±0.000"  # by construction
    assert rows["Drop sex, relationship and marital status"][2] == "1.000 ±0.000"
    assert rows["census, lambdarank"][2] == "0.000 ±0.000"  # LambdaMART's gradients are LGBMRanker's own
    defaults = (tmp_path / "results" / "defaults.md").read_text(encoding="utf-8")
    for task in ("Synthetic", "German Credit", "Microsoft", "Census", "Hiring"):
        # The plain ranker, three rhos of two adversaries, and what the default rho of both changes.
        assert defaults.count(f"| {task} |") == 9, task


# Which method when


def rows_of_data(page, data):
    """Rows of the page's first table of numbers, by method."""
    table = page[page.index("| data | method |") : page.index("## Less the plain ranker")]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith(f"| {data} |")]
    return {row[1]: row[2:] for row in rows}


@pytest.mark.slow
def test_page_of_regimes(examples, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    import when_does_it_help

    when_does_it_help.main(["--quick", "--output", str(tmp_path / "page.md")])
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert (tmp_path / "page.png").stat().st_size > 10_000 and not re.search(r"\bnan\b|\{|\}", page)
    for regime in when_does_it_help.REGIMES:
        block = page[page.index(f"| {regime} | *plain") :]
        plain = float(re.search(r"tau ([\d.]+)\*", block).group(1))
        averaged = float(re.search(r"\| averaged \| \S+ \| \+?([-\d.]+)", block).group(1))
        if regime != "wrong groups":  # where the twins that it is given are others than the true ones
            assert plain + averaged == pytest.approx(1.0, abs=0.006)  # by construction


@pytest.mark.slow
def test_page_of_methods(examples, tmp_path, capsys):
    for name in ("german.data.gz", "adult.csv.gz"):
        shared_data(name)
    import which_method

    which_method.main(["--quick", "--output", str(tmp_path / "page.md")])
    page = "\n".join((tmp_path / name).read_text(encoding="utf-8") for name in ("page.md", "page_differences.md"))
    assert capsys.readouterr().out.strip() == page.strip()
    assert "Left out" not in page and not re.search(r"\bnan\b|\{|\}", page)
    for data, dropped in (
        ("Hiring", "drop marks 1 and 2"),
        ("German Credit", "drop sex"),
        ("Census", "drop sex, relationship and marital status"),
    ):
        rows = rows_of_data(page, data)
        assert len(rows) == (20 if data == "Census" else 17)
        assert rows[f"LightGBM, {dropped}"] and rows["ExposureLPRanker, drawn"][3] == "0.0000 ±0.0000"
        assert rows["AveragingRanker"][2] == "1.000 ±0.000"
        if data != "Hiring":  # by construction
            assert rows[dropped.capitalize()][2] == rows[f"LightGBM, {dropped}"][2] == "1.000 ±0.000"
        # The softer policy is the plain ranker's, drawn, at .05 less of NDCG.
        plain, soft = rows["Linear ranker"], rows["Temperature, drawn"]
        assert plain[2] == soft[2] and float(plain[0][:5]) - float(soft[0][:5]) == pytest.approx(0.05, abs=0.0011)
