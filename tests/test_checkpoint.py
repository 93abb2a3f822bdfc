"""Checkpoints: a fit that was cut off goes on to the same bits, from no other run's file, and no half of one."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager, nullcontext

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.fixes import parse_version
from small_tasks import MIXED, make_task

from skfairrank import FairPGRanker, PlackettLuceRanker, SensitiveSubspaceMetric, SenSTIRRanker
from skfairrank._states import read_state, write_state
from skfairrank.adversaries import Ascent
from skfairrank.callbacks import Checkpoint
from skfairrank.datasets import make_biased_ranking
from skfairrank.fair_metrics import ComparablePairsMetric
from skfairrank.model_selection import QueryKFold
from skfairrank.scores import LinearScore, MLPScore

HAS_CALLBACKS = parse_version(sklearn.__version__) >= parse_version("1.9")
needs_callbacks = pytest.mark.skipif(not HAS_CALLBACKS, reason=f"scikit-learn {sklearn.__version__} has no callbacks")

TASK = make_task(MIXED, seed=1)
# Merits so close that exposure by merit may be unequal; every query has something relevant, and the large ones something else.
TASK.y = TASK.y.clip(1, 2)
TASK.y[[np.flatnonzero(TASK.qid == q)[0] for q in np.unique(TASK.qid) if np.sum(TASK.qid == q) == 4]] = 0
GROUP = (np.random.default_rng(2).random(len(TASK.y)) < 0.5).astype(int)
GIVEN = {"qid": TASK.qid, "sensitive_features": GROUP}
RAW = np.random.default_rng(5).normal(size=(2, 4))
QUICK = {"max_iter": 60, "batch_size": 7, "random_state": 0, "learning_rate": 0.03}


# A fit that breaks off


class Crash(Exception):
    """What a power cut is to a fit."""


class Steps:
    """Counts the calls of `pull_back` of all scores, and breaks one off."""

    n_calls, last, error = 0, None, Crash

    @classmethod
    @contextmanager
    def counted(cls, last=None, error=Crash):
        cls.n_calls, cls.last, cls.error = 0, last, error
        try:
            yield cls
        finally:
            cls.last = None

    @classmethod
    def one_more(cls):
        cls.n_calls += 1
        if cls.n_calls == cls.last:
            raise cls.error


class CountedLinear(LinearScore):
    def pull_back(self, *args):
        Steps.one_more()
        super().pull_back(*args)


class CountedNetwork(MLPScore):
    def pull_back(self, *args):
        Steps.one_more()
        super().pull_back(*args)


def crash(ranker, n_calls, *, error=Crash, **given):
    with Steps.counted(n_calls, error), pytest.raises(error):
        ranker.fit(TASK.X, TASK.y, **{**GIVEN, **given})


def fit(ranker, X=TASK.X, y=TASK.y, **given):
    with Steps.counted():
        return ranker.fit(X, y, **{**GIVEN, **given})


def assert_same(a, b):
    """Everything that was learned, to the bit: arrays, numbers, and what objects are made of."""
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, dict):
        assert sorted(a) == sorted(b)
        for name in a:
            assert_same(a[name], b[name])
    elif isinstance(a, (list, tuple)):
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    elif isinstance(a, BaseEstimator):
        assert_same(learned(a), learned(b))
    elif not callable(a):
        assert a == b


def learned(estimator):
    return {name: value for name, value in vars(estimator).items() if name != "_skl_callbacks"}


def moved(X):
    return X + [0.5, 0.0, -0.5, 0.0]


def twice(X):
    return 2.0 * X


RANKERS = {
    "plain": PlackettLuceRanker(alpha=0.01),
    "plrank": PlackettLuceRanker(gradient="plrank"),
    "early stopping": PlackettLuceRanker(early_stopping=True, n_iter_no_change=100),
    "stopped early": PlackettLuceRanker(early_stopping=True, n_iter_no_change=5, tol=0.5),
    "network": PlackettLuceRanker(score_function=CountedNetwork((3,))),
    "average precision": PlackettLuceRanker(utility="average_precision"),
    "fair-pg": FairPGRanker(fairness_weight=2.0),
    "ascent": SenSTIRRanker(rho=0.3, epsilon=0.3, metric=SensitiveSubspaceMetric()),
    # lambda rises in step 6 and falls to its floor in step 14, which ends the rule of the paper.
    "ascent, raw": SenSTIRRanker(
        rho=30.0, metric=SensitiveSubspaceMetric(scale="raw"), epsilon=1e-4, full_step_size=0.01, subspace_init=0.5
    ),
    "own starts": SenSTIRRanker(RAW, rho=0.3, adversary=Ascent(subspace_n_starts=None)),
    "centered": SenSTIRRanker(RAW, rho=0.3, score_distance="centered", fair_start=0.5),
    "ranges": SenSTIRRanker(RAW, rho=0.3, feature_range="train"),
    "network, ascent": SenSTIRRanker(RAW, rho=0.3, score_function=CountedNetwork((3,)), early_stopping=True),
    "exact": SenSTIRRanker(RAW, rho=0.3, adversary="exact", subspace_radius=0.2),
    "exact_box": SenSTIRRanker(RAW, rho=0.3, adversary="exact_box", subspace_radius=0.2),
    "gaps_ascent": SenSTIRRanker(rho=0.3, metric=SensitiveSubspaceMetric(), adversary="gaps_ascent"),
    "given": SenSTIRRanker(RAW, rho=0.3, adversary="given", hypotheticals=[moved, twice]),
    "relaxed": SenSTIRRanker(RAW, rho=0.3, adversary="exact_box", relax=0.7, subspace_radius=0.2),
    "relaxed, early stopping": SenSTIRRanker(
        rho=0.3, metric=SensitiveSubspaceMetric(), adversary="gaps", relax=0.7, early_stopping=True
    ),
}


def made(name, **params):
    ranker = clone(RANKERS[name]).set_params(**QUICK)
    if ranker.score_function == "linear":
        ranker.set_params(score_function=CountedLinear())
    return ranker.set_params(**params)


@needs_callbacks
@pytest.mark.parametrize("name", RANKERS)
def test_a_fit_that_broke_off_goes_on_to_the_same_bits(name, tmp_path):
    """Wherever it broke off, and where it breaks off more than once; nothing that was learned differs."""
    whole = fit(made(name))
    n_calls, path = Steps.n_calls, tmp_path / "run.npz"
    for points in ([2], [0.2], [0.45, 0.1, 0.2], [n_calls]):
        for at in points:
            crash(made(name).set_callbacks(Checkpoint(path, every=3)), at if at > 1 else max(2, int(at * n_calls)))
        found = fit(made(name).set_callbacks(Checkpoint(path, every=3)))
        assert Steps.n_calls < n_calls or max(points) == 2
        assert_same(learned(found), learned(whole))
        again = fit(made(name).set_callbacks(Checkpoint(path)))
        assert Steps.n_calls == 0
        assert_same(learned(again), learned(whole))
        path.unlink()


@needs_callbacks
@pytest.mark.parametrize("n_steps", [1, 9, 30, 60])
def test_ctrl_c_keeps_the_last_state(n_steps, tmp_path):
    whole, path = fit(made("ascent")), tmp_path / "run.npz"
    with Steps.counted(n_steps, KeyboardInterrupt), pytest.warns(UserWarning, match="interrupted"):
        part = made("ascent").set_callbacks(Checkpoint(path, every=4)).fit(TASK.X, TASK.y, **GIVEN)
    assert part.n_iter_ == n_steps - 1
    found = fit(made("ascent").set_callbacks(Checkpoint(path)))
    assert Steps.n_calls == 60 - (n_steps - 1) // 4 * 4
    assert_same(learned(found), learned(whole))


@needs_callbacks
def test_a_killed_process_goes_on_in_another(tmp_path):
    script = textwrap.dedent("""
        import os, signal
        from skfairrank import SenSTIRRanker
        from skfairrank.callbacks import Checkpoint
        from skfairrank.datasets import make_biased_ranking

        class Kill:
            n_tasks = 0
            def setup(self, estimator, context): pass
            def teardown(self, estimator, context): pass
            def on_fit_task_begin(self, estimator, context): pass
            def on_fit_task_end(self, estimator, context):
                self.n_tasks += 1
                if self.n_tasks == 20:
                    os.kill(os.getpid(), signal.SIGKILL)

        task = make_biased_ranking(n_queries=30, random_state=0)
        ranker = SenSTIRRanker([[0.0, 1.0]], rho=0.1, max_iter=200, random_state=0)
        ranker.set_callbacks(Checkpoint("run.npz", every=7), Kill()).fit(task.data, task.target, qid=task.qid)
    """)
    first = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert first.returncode == -signal.SIGKILL, first.stderr
    assert read_state(tmp_path / "run.npz")["training"]["n_iter"] == 77  # the 20th task ends after step 80
    task, seen = make_biased_ranking(n_queries=30, random_state=0), Meanwhile()
    ranker = SenSTIRRanker([[0.0, 1.0]], rho=0.1, max_iter=200, random_state=0)
    whole = clone(ranker).fit(task.data, task.target, qid=task.qid)
    ranker.set_callbacks(Checkpoint(tmp_path / "run.npz"), seen).fit(task.data, task.target, qid=task.qid)
    assert [told is None for told in seen.told].count(True) == 19
    assert_same(learned(ranker), learned(whole))


@needs_callbacks
@pytest.mark.parametrize("name", ["plain", "fair-pg", "ascent", "relaxed, early stopping"])
def test_a_fit_goes_on_from_another_copy_of_its_file(name, tmp_path):
    """What each source writes for training has another name, as in another process, and is the same rows.

    Begun in memory, gone on with from a file, and from one that has its queries in another order.
    """
    pytest.importorskip("pyarrow")
    from skfairrank.ranking_files import ParquetRanking

    features = list("abcd")
    table = pd.DataFrame(TASK.X, columns=features).assign(target=TASK.y, qid=TASK.qid, sex=GROUP)
    table = table.sort_values("qid", kind="stable")
    given = table[features], table["target"]
    metadata = {"qid": table["qid"], "sensitive_features": table["sex"]}

    def source(table=table):
        path = tmp_path / f"{len(os.listdir(tmp_path))}.parquet"
        table.to_parquet(path, index=False)
        return ParquetRanking(path, features=features, sensitive_features="sex")

    def go_on(*given, last=None, **metadata):
        ranker = made(name).set_callbacks(Checkpoint(tmp_path / "run.npz", every=8))
        with Steps.counted(last), pytest.raises(Crash) if last else nullcontext():
            return ranker.fit(*given, **metadata)

    whole = made(name).fit(*given, **metadata)
    go_on(*given, last=17, **metadata)
    go_on(source(), last=18)
    found = go_on(source(table.sort_values("qid", ascending=False, kind="stable")))
    assert Steps.n_calls < whole.n_iter_ - 30
    assert_same(learned(found), learned(whole))
    if name == "fair-pg":  # only what is in a file of coefficients knows the groups
        with pytest.raises(ValueError, match="what the regulariser has learned"):
            go_on(source(table.assign(sex=(table["sex"] + (table["qid"] > table["qid"].median())) % 2)))


@needs_callbacks
def test_without_random_state_the_file_has_the_random_numbers(tmp_path):
    """Two fits that go on from one file are equal; two that begin are not."""
    path, found = tmp_path / "run.npz", []
    crash(made("early stopping", random_state=None).set_callbacks(Checkpoint(path, every=8)), 33)
    for name in ("a.npz", "b.npz"):
        shutil.copy(path, tmp_path / name)
        found.append(fit(made("early stopping", random_state=None).set_callbacks(Checkpoint(tmp_path / name))))
    assert_same(learned(found[0]), learned(found[1]))
    assert fit(made("early stopping", random_state=None)).coef_.tolist() != found[0].coef_.tolist()


@needs_callbacks
def test_a_generator_as_random_state(tmp_path):
    """The script makes it anew, as it did before."""

    def ranker():
        return made("ascent", random_state=np.random.default_rng(3))

    crash(ranker().set_callbacks(Checkpoint(tmp_path / "run.npz", every=8)), 33)
    found = fit(ranker().set_callbacks(Checkpoint(tmp_path / "run.npz")))
    assert found.coef_.tolist() == fit(ranker()).coef_.tolist()


@needs_callbacks
def test_a_warm_start_is_a_run_of_its_own(tmp_path):
    """It goes on from the weights of another fit, which are a part of what it is."""

    def fitted():
        return fit(made("ascent", warm_start=True))

    whole = fit(fitted(), y=TASK.y[::-1])
    crash_of_second, path = fitted().set_callbacks(Checkpoint(tmp_path / "second.npz", every=8)), tmp_path / "first.npz"
    with Steps.counted(33), pytest.raises(Crash):
        crash_of_second.fit(TASK.X, TASK.y[::-1], **GIVEN)
    found = fit(fitted().set_callbacks(Checkpoint(tmp_path / "second.npz")), y=TASK.y[::-1])
    assert Steps.n_calls == 60 - 32
    assert_same(learned(found), learned(whole))
    ranker = fit(made("ascent", warm_start=True).set_callbacks(Checkpoint(path)))
    with pytest.raises(ValueError, match="the start .* is .* hash .*, and was at random"):
        fit(ranker)


# Whose file it is


def half_done(tmp_path, name="ascent", **params):
    path = tmp_path / "run.npz"
    crash(made(name, **params).set_callbacks(Checkpoint(path, every=8)), 33)
    return path


@needs_callbacks
@pytest.mark.parametrize(
    "changed",
    [
        {"max_iter": 61}, {"rho": 0.2}, {"learning_rate": 0.04}, {"random_state": 1}, {"metric": RAW},
        {"metric": SensitiveSubspaceMetric(direction="difference")}, {"adversary": Ascent()}, {"utility": "dcg"},
        {"score_function": CountedNetwork((3,))}, {"batch_size": 8}, {"early_stopping": True}, {"fair_start": 0.2},
    ],
    ids=lambda changed: next(iter(changed)),
)  # fmt: skip
def test_a_file_of_other_parameters_is_refused_by_name(changed, tmp_path):
    path = half_done(tmp_path)
    before = path.read_bytes()
    with pytest.raises(
        ValueError, match=f"belongs to another run: {next(iter(changed))} is .*, and was .*delete this one"
    ):
        fit(made("ascent", **changed).set_callbacks(Checkpoint(path)))
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="the class of the ranker is PlackettLuceRanker, and was SenSTIRRanker"):
        fit(made("plain").set_callbacks(Checkpoint(path)))


def in_one_cell(values, by=1):
    values = values.copy()
    values[(7, 2) if values.ndim == 2 else 7] += by
    return values


OTHER_DATA = {
    "X": ({"X": in_one_cell(TASK.X, 1e-9)}, "X is float64 of shape .* hash"),
    "dtype": ({"X": TASK.X.astype(np.float32)}, r"X is float32 of shape .*, and was float64"),
    "one feature less": (
        {"X": TASK.X[:, :3]},
        r"X is float64 of shape \(\d+, 3\), hash .* and was float64 of shape \(\d+, 4\)",
    ),
    "y": ({"y": in_one_cell(TASK.y)}, "y is gains"),
    "qid": ({"qid": np.where(TASK.qid == 3, 2, TASK.qid)}, "X is|qid is"),
    "query_weight": ({"query_weight": 1.0 + (TASK.qid == 3)}, "query_weight is"),
    "sensitive_features": ({"sensitive_features": 1 - in_one_cell(1 - GROUP)}, "what the regulariser has learned"),
}


@needs_callbacks
@pytest.mark.parametrize("name", OTHER_DATA)
def test_a_file_of_other_data_is_refused(name, tmp_path):
    path = half_done(tmp_path)
    changed, message = OTHER_DATA[name]
    with pytest.raises(ValueError, match=f"belongs to another run: ({message})"):
        fit(made("ascent").set_callbacks(Checkpoint(path)), **changed)


@needs_callbacks
def test_what_has_no_effect_may_change(tmp_path, capsys):
    """n_jobs, verbose, `every`, the name of the file, and how the rows of queries are interleaved."""
    path, whole = half_done(tmp_path), fit(made("ascent"))
    path = path.rename(tmp_path / "other.npz")
    order = np.argsort(TASK.qid, kind="stable")
    ranker = made("ascent", n_jobs=2, verbose=1).set_callbacks(Checkpoint(str(path), every=5))
    fit(ranker, TASK.X[order], TASK.y[order], qid=TASK.qid[order], sensitive_features=GROUP[order])
    assert ranker.coef_.tolist() == whole.coef_.tolist() and Steps.n_calls == 60 - 32
    assert "step 60/60" in capsys.readouterr().out


@needs_callbacks
def test_a_metric_that_draws_random_numbers_must_draw_them_again(tmp_path):
    rng = np.random.default_rng(0)
    pairs, comparable = rng.normal(size=(40, 2, 4)), rng.random(40) < 0.5

    class Drawn(BaseEstimator):
        def fit(self, X):
            fitted = ComparablePairsMetric(max_iter=5, alpha=0.1).fit(pairs, comparable)
            self.directions_, self.basis_, self.shrink_ = (
                fitted.directions_,
                fitted.basis_,
                fitted.shrink_ - rng.random() / 10,
            )
            return self

    path = tmp_path / "run.npz"
    crash(made("ascent", metric=Drawn()).set_callbacks(Checkpoint(path, every=8)), 33)
    with pytest.raises(ValueError, match="what the regulariser has learned .*random_state"):
        fit(made("ascent", metric=Drawn()).set_callbacks(Checkpoint(path)))


@needs_callbacks
def test_other_versions_are_told(tmp_path):
    path, whole = half_done(tmp_path), fit(made("ascent"))
    state = read_state(path)
    write_state(path, {**state, "versions": {**state["versions"], "numpy": "1.0.0"}})
    with pytest.warns(UserWarning, match=rf"written with numpy 1.0.0 \(now {np.__version__}\): training goes on"):
        found = fit(made("ascent").set_callbacks(Checkpoint(path)))
    assert_same(learned(found), learned(whole))
    write_state(path, {**state, "format": 0})
    with pytest.raises(ValueError, match="none of this version of skfairrank: delete it"):
        fit(made("ascent").set_callbacks(Checkpoint(path)))


# Files


@needs_callbacks
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(share, tmp_path):
    path = half_done(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(
        ValueError, match=r"run.npz' holds no state of training, or only a part of one.* delete it to begin anew"
    ):
        fit(made("ascent").set_callbacks(Checkpoint(path)))


@needs_callbacks
@pytest.mark.parametrize("kind", ["text", "pickle", "npz", "npz of objects"])
def test_another_file_is_refused_and_stays(kind, tmp_path):
    path = tmp_path / "run.npz"
    if kind == "text":
        path.write_text("notes")
    elif kind == "pickle":
        path.write_bytes(pickle.dumps({"a": 1}))
    else:
        np.savez(
            path, a=np.arange(3) if kind == "npz" else np.array([{}], dtype=object), tree=np.array([{}], dtype=object)
        )
    before = path.read_bytes()
    with pytest.raises(ValueError, match="holds no state of training"):
        fit(made("plain").set_callbacks(Checkpoint(path)))
    assert path.read_bytes() == before


@needs_callbacks
def test_a_write_that_fails_leaves_the_last_state(tmp_path):
    """The file beside it cannot be made: its name is too long for the file system."""
    path = tmp_path / ("r" * 240)
    with pytest.raises(ValueError, match=r"cannot be written \(.*choose a folder"):
        fit(made("plain").set_callbacks(Checkpoint(path)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [object(), {1, 2}, float])
def test_a_state_that_cannot_be_written_leaves_the_file_as_it_is(value, tmp_path):
    write_state(tmp_path / "state.npz", {"a": np.arange(3), "b": [1, 2**200, float("inf"), None, {"c": "d"}]})
    with pytest.raises(TypeError):
        write_state(tmp_path / "state.npz", {"a": np.arange(4), "b": value})
    found = read_state(tmp_path / "state.npz")
    assert found["a"].tolist() == [0, 1, 2] and found["b"] == [1, 2**200, float("inf"), None, {"c": "d"}]
    assert len(list(tmp_path.iterdir())) == 1


@needs_callbacks
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_known_before_the_first_step(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="cannot be written"):
        fit(made("plain").set_callbacks(Checkpoint(tmp_path / "run.npz")))
    assert Steps.n_calls == 0


@needs_callbacks
@pytest.mark.parametrize("path", ["missing/run.npz", "missing/"])
def test_a_missing_folder_is_named(path, tmp_path):
    with pytest.raises(ValueError, match=r"there is no folder '.*missing'. Create it first"):
        fit(made("plain").set_callbacks(Checkpoint(f"{tmp_path}/{path}")))


class Meanwhile:
    """A callback that does something after the n-th part of a fit, and keeps what it was told."""

    def __init__(self, n=None, action=None, stop=False):
        self.n, self.action, self.stop, self.told = n, action, stop, []

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.told.append(fitted_estimator)
        if len(self.told) == self.n:
            if self.action is not None:
                self.action()
            return self.stop


@needs_callbacks
def test_two_fits_at_a_time_do_not_share_a_file(tmp_path):
    """The second goes on from the first one's state, or is another run; either is told, and one of them is right."""
    path, whole = tmp_path / "run.npz", fit(made("ascent"))
    others = []

    def same_fit():
        others.append(made("ascent").set_callbacks(Checkpoint(path)).fit(TASK.X, TASK.y, **GIVEN))

    with pytest.raises(ValueError, match="Another fit has written to the checkpoint .* meanwhile, so this one ends"):
        fit(made("ascent").set_callbacks(Checkpoint(path), Meanwhile(30, same_fit)))
    assert_same(learned(others[0]), learned(whole))

    def other_fit():
        with pytest.raises(ValueError, match="another run: learning_rate"):
            made("ascent", learning_rate=0.5).set_callbacks(Checkpoint(path)).fit(TASK.X, TASK.y, **GIVEN)

    path.unlink()
    found = fit(made("ascent").set_callbacks(Checkpoint(path), Meanwhile(30, other_fit)))
    assert_same(learned(found), learned(whole))


# Beside other callbacks


@needs_callbacks
@pytest.mark.parametrize("name", ["ascent", "early stopping", "relaxed"])
def test_a_fit_that_a_callback_ended_goes_on(name, tmp_path):
    path, whole = tmp_path / "run.npz", fit(made(name))
    part = fit(made(name).set_callbacks(Checkpoint(path, every=1000), Meanwhile(9, stop=True)))
    assert part.n_iter_ in (18, 18 + 60)
    found = fit(made(name).set_callbacks(Checkpoint(path)))
    assert_same(learned(found), learned(whole))


@needs_callbacks
def test_a_callback_that_ends_training_again_ends_it_at_the_same_step(tmp_path):
    for _ in range(2):
        part = fit(made("ascent").set_callbacks(Checkpoint(tmp_path / "run.npz"), Meanwhile(9, stop=True)))
        assert part.n_iter_ == 18
    assert Steps.n_calls == 0


@needs_callbacks
def test_other_callbacks_are_told_of_all_parts_of_a_fit(tmp_path):
    """Of those that were done before without a ranker, since those rankers are gone."""
    path, whole, rest = half_done(tmp_path), Meanwhile(), Meanwhile()
    fit(made("ascent").set_callbacks(whole))
    fit(made("ascent").set_callbacks(Checkpoint(path), rest))
    assert len(whole.told) == len(rest.told) == 31  # every second step, and the fit
    assert [ranker is None for ranker in rest.told] == [True] * 16 + [False] * 15
    for before, after in zip(whole.told[16:], rest.told[16:], strict=True):
        np.testing.assert_array_equal(before.coef_, after.coef_)


# In searches, and where it cannot be


@needs_callbacks
def test_a_search_with_a_folder_begins_with_what_is_done(tmp_path):
    def search(*callbacks):
        return GridSearchCV(
            made("ascent").set_callbacks(*callbacks),
            {"rho": [0.0, 0.3], "learning_rate": [0.03, 0.1]},
            cv=QueryKFold(3),
        )

    with sklearn.config_context(enable_metadata_routing=True):
        whole = fit(search())
        n_steps = Steps.n_calls
        assert n_steps == 13 * 60
        with Steps.counted(400, KeyboardInterrupt), pytest.warns(UserWarning, match="interrupted"):
            # Ctrl-C ends one fit; the next ones go on.
            search(Checkpoint(tmp_path, every=8)).fit(TASK.X, TASK.y, **GIVEN)
        assert len(list(tmp_path.iterdir())) == 13
        found = fit(search(Checkpoint(tmp_path)))
        assert 0 < Steps.n_calls < 60
        again = fit(search(Checkpoint(tmp_path)))
        assert Steps.n_calls == 0
    for other in (found, again):
        for name in whole.cv_results_:
            if "time" not in name:
                assert_same(whole.cv_results_[name], other.cv_results_[name])
        assert_same(whole.best_estimator_.coef_, other.best_estimator_.coef_)


@needs_callbacks
def test_where_a_checkpoint_cannot_be_it_says_so(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.npz")
    with pytest.raises(ValueError, match="keeps steps of solver=\"adam\", and solver is 'lbfgs'"):
        fit(made("plain", solver="lbfgs").set_callbacks(checkpoint))
    with pytest.raises(ValueError, match="keeps one start, and n_init is 3"):
        fit(made("plain", n_init=3).set_callbacks(checkpoint))
    with pytest.raises(ValueError, match="2 callbacks of the kind Checkpoint"):
        fit(made("plain").set_callbacks(checkpoint, Checkpoint(tmp_path / "other.npz")))
    search = GridSearchCV(made("plain"), {"alpha": [0.0]}, cv=[(np.arange(30), np.arange(30))])
    if hasattr(search, "set_callbacks"):
        with pytest.raises(TypeError, match="was set on GridSearchCV: set it on the ranker itself"):
            search.set_callbacks(checkpoint).fit(TASK.X, TASK.y)
    for every in (0, 2.5, True, "10"):
        with pytest.raises(ValueError, match="give a number of training steps"):
            Checkpoint("run.npz", every=every)
    for path in (None, "", 3, b"run.npz"):
        with pytest.raises(TypeError, match="give the name of a file, such as 'run.npz', or of a folder"):
            Checkpoint(path)
    assert not list(tmp_path.iterdir())
    assert repr(Checkpoint("run.npz", every=5)) == "Checkpoint('run.npz', every=5)"


@pytest.mark.skipif(HAS_CALLBACKS, reason="scikit-learn has callbacks")
def test_without_callbacks_it_says_what_is_needed():
    with pytest.raises(ImportError, match=r"from version 1.9 on; this is .*pip install -U scikit-learn"):
        Checkpoint("run.npz")
