"""The example's PyTorch module as a score: against finite differences, and against the same network without torch."""

import runpy
import sys

import numpy as np
import pytest
from _data import ROOT

from skfairrank import PlackettLuceRanker
from skfairrank.scores import MLPScore

torch = pytest.importorskip("torch", reason="PyTorch is not installed: examples/plot_torch_score.py is not run")


def network(n_features):
    return torch.nn.Sequential(torch.nn.Linear(n_features, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1, bias=False))


@pytest.fixture
def example(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.setattr(sys, "argv", ["plot_torch_score.py", "--quick"])
    return runpy.run_path(str(ROOT / "examples" / "plot_torch_score.py"))


def test_the_example_runs_and_its_score_is_the_network(example):
    assert len(example["points"]) == 3
    score, rng = example["TorchScore"](network), np.random.default_rng(0)
    theta, X, g = score.initial_parameters(3, rng), rng.normal(size=(6, 3)), rng.normal(size=6)
    W, b, w = theta[:12].reshape(4, 3), theta[12:16], theta[16:]  # torch keeps W transposed
    twin, ours = MLPScore((4,)), np.concatenate([W.T.ravel(), b, w])
    np.testing.assert_allclose(score.values(theta, X), twin.values(ours, X), rtol=1e-12)
    np.testing.assert_allclose(score.input_gradient(theta, X), twin.input_gradient(ours, X), rtol=1e-10)
    moves = 1e-6 * np.eye(len(theta))
    slopes = [g @ (score.values(theta + m, X) - score.values(theta - m, X)) / 2e-6 for m in moves]
    np.testing.assert_allclose(score.parameter_gradient(theta, X, g), slopes, atol=1e-8)
    ranker = PlackettLuceRanker(score_function=score, max_iter=3, random_state=0)
    assert np.isfinite(ranker.fit(X, np.arange(6) % 3, qid=[0, 0, 0, 1, 1, 1]).predict(X)).all()
