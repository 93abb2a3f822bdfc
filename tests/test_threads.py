"""Several fits at once: BLAS has its threads again afterwards, and weights are those of a serial fit, to the bit."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from small_tasks import MIXED, make_task
from threadpoolctl import ThreadpoolController, threadpool_limits

from skfairrank import PlackettLuceRanker, SenSTIRRanker
from skfairrank._threads import one_blas_thread

BLAS = ThreadpoolController().select(user_api="blas")
RAW = np.random.default_rng(5).normal(size=(2, 4))


def n_threads():
    return [library["num_threads"] for library in BLAS.info()]


@pytest.fixture(autouse=True)
def two_threads():
    """Also where the environment says one."""
    with threadpool_limits(limits=2, user_api="blas"):
        yield


def fit(k):
    task = make_task(MIXED, seed=k % 3)
    ranker = {
        0: PlackettLuceRanker(alpha=0.01, solver="lbfgs"),
        1: SenSTIRRanker(RAW, adversary="exact_box", solver="lbfgs"),
        2: SenSTIRRanker(RAW, adversary="exact", solver="lbfgs"),
    }[k % 3]
    return ranker.fit(task.X, task.y, qid=task.qid).coef_


@pytest.mark.parametrize("pool", ["futures", "joblib"])
def test_concurrent_fits_are_serial_ones_to_the_bit(pool):
    before, expected = n_threads(), [fit(k) for k in range(3)]
    for _ in range(5):
        if pool == "joblib":
            found = Parallel(n_jobs=3, backend="threading")(delayed(fit)(k) for k in range(6))
        else:
            with ThreadPoolExecutor(3) as executor:
                found = list(executor.map(fit, range(6)))
        np.testing.assert_array_equal(found, 2 * expected)
        assert n_threads() == before


@pytest.mark.parametrize("first_out", [True, False], ids=["first in, first out", "first in, last out"])
def test_overlapping_limits_end_with_the_last(first_out):
    """Contexts of two threads that live on, in every order; each for itself, they would restore each other's limit."""
    before, is_in, may_leave = n_threads(), threading.Event(), threading.Event()
    assert any(n > 1 for n in before) or not before

    def second():
        with one_blas_thread():
            is_in.set()
            may_leave.wait(30)

    with ThreadPoolExecutor(1) as executor:
        with one_blas_thread():
            future = executor.submit(second)
            assert is_in.wait(30)
            if not first_out:
                may_leave.set()
                future.result()
                assert all(n == 1 for n in n_threads())
        if first_out:
            assert all(n == 1 for n in n_threads())  # the second is still in
            may_leave.set()
            future.result()
        assert n_threads() == before


def test_limits_within_limits_and_around_what_fails():
    before = n_threads()
    with one_blas_thread():
        with pytest.raises(ZeroDivisionError), one_blas_thread():
            assert all(n == 1 for n in n_threads())
            raise ZeroDivisionError
        assert all(n == 1 for n in n_threads())
    assert n_threads() == before


def test_a_limit_that_another_thread_holds_does_not_hinder():
    """threadpoolctl lets the thread that set a limit first have its way; fits run in others."""
    before = n_threads()

    def look():
        with one_blas_thread():
            return n_threads()

    with threadpool_limits(limits=2, user_api="blas"), ThreadPoolExecutor(1) as executor:
        found = executor.submit(look).result()
        assert all(n == 1 for n in found) and n_threads() == before
