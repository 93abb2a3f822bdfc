"""PathDisplay shows what `senstir_path` found, names what it is told to, and draws nothing over its lines."""

import sys

import numpy as np
import pandas as pd
import pytest

from skfairrank import senstir_path
from skfairrank.datasets import make_biased_ranking
from skfairrank.inspection import PathDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

NAMES = ["first", "second", "noise"]


@pytest.fixture
def plt():
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def fit_path(frame, **kwargs):
    task = make_biased_ranking(n_queries=20, n_items=5, random_state=0)
    X = np.column_stack([task.data, np.random.default_rng(0).normal(size=len(task.data))])
    X = pd.DataFrame(X, columns=NAMES) if frame else X
    return senstir_path(X, task.target, qid=task.qid, metric=[[0, 1, 0]], **kwargs)


@pytest.fixture(scope="module")
def path():
    return fit_path(frame=True, n_rhos=6)


def test_lines_are_the_path(plt, path):
    display = PathDisplay.from_path(path)
    for j, line in enumerate(display.lines_):
        np.testing.assert_array_equal(line.get_xdata(), path.rhos)
        np.testing.assert_array_equal(line.get_ydata(), path.coefs[:, j])
    np.testing.assert_array_equal(display.utility_line_.get_ydata(), path.utilities)
    np.testing.assert_array_equal(display.regularizer_line_.get_ydata(), path.regularizers)
    assert [ax.get_xscale() for ax in display.axes_] == ["log"] * 3
    assert display.ax_ is display.axes_[0] and all(ax.get_ylabel() for ax in display.axes_)
    assert display.axes_[-1].get_xlabel() == r"$\rho$"


def test_the_largest_weights_are_named_in_the_order_in_which_they_begin(plt, path):
    """The names that X had in training; "noise" has the smallest weights."""
    display = PathDisplay.from_path(path, named=2)
    named = [text.get_text() for text in display.legend_.get_texts()]
    largest = np.argsort(-np.abs(path.coefs).max(axis=0))[:2]
    assert named == [NAMES[j] for j in sorted(largest, key=lambda j: -path.coefs[0, j])]
    colors = {display.lines_[j].get_color() for j in largest}
    grey = display.lines_[np.setdiff1d(range(3), largest)[0]].get_color()
    assert len(colors) == 2 and grey not in colors


@pytest.mark.parametrize("named", [["noise"], [2], [-1]])
def test_features_named_on_request(plt, path, named):
    display = PathDisplay.from_path(path, named=named)
    assert [text.get_text() for text in display.legend_.get_texts()] == ["noise"]


def test_names_given_and_names_by_position(plt, path):
    display = PathDisplay.from_path(path, feature_names=["a", "b", "c"], named=["c"])
    assert [text.get_text() for text in display.legend_.get_texts()] == ["c"]
    with_zero = fit_path(frame=False, rhos=[0, 0.01, 0.1])
    display = PathDisplay.from_path(with_zero, named=[0])
    assert [text.get_text() for text in display.legend_.get_texts()] == ["x0"]
    assert display.ax_.get_xscale() == "symlog"  # rho = 0 is shown
    assert PathDisplay.from_path(path, named=0).legend_ is None


def test_the_legend_covers_nothing(plt, path):
    display = PathDisplay.from_path(path)
    display.figure_.canvas.draw()
    legend = display.legend_.get_window_extent()
    assert not any(legend.overlaps(ax.get_window_extent()) for ax in display.axes_)
    inside = display.figure_.bbox
    assert inside.x0 <= legend.x0 and legend.x1 <= inside.x1 and inside.y0 <= legend.y0 and legend.y1 <= inside.y1


def test_drawn_in_given_axes(plt, path):
    figure, axes = plt.subplots(1, 2, layout="constrained")
    display = PathDisplay.from_path(path, ax=axes[1])
    assert display.figure_ is figure and len(figure.axes) == 2 + 3
    figure, axes = plt.subplots(3)
    assert list(PathDisplay.from_path(path, ax=axes).axes_) == list(axes)


def test_errors(plt, path):
    with pytest.raises(ValueError, match="2 entries for 3 features"):
        PathDisplay.from_path(path, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="'age'"):
        PathDisplay.from_path(path, named=["age"])
    with pytest.raises(ValueError, match="named has 3"):
        PathDisplay.from_path(path, named=[3])
    with pytest.raises(ValueError, match="named=-1"):
        PathDisplay.from_path(path, named=-1)
    with pytest.raises(ValueError, match="PathDisplay needs 3"):
        PathDisplay.from_path(path, ax=plt.subplots(2)[1])
    with pytest.raises(ValueError, match="grid"):
        PathDisplay.from_path(path, ax=plt.figure().add_axes((0.1, 0.1, 0.8, 0.8)))


def test_without_matplotlib_the_error_names_the_extra(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install \"\.\[plots\]\""):
        PathDisplay.from_path(path)
