"""What the artists hold equals what they were given; and no display draws anything over its data."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairrank import PlackettLuceRanker, RandomRanker, SenSTIRRanker, senstir_path
from skfairrank.datasets import make_biased_ranking
from skfairrank.inspection import (
    PathDisplay,
    RankDisplacementDisplay,
    ScoreContourDisplay,
    TradeoffDisplay,
    TrainingHistoryDisplay,
    rank_displacement,
)
from skfairrank.inspection._plot import COLORS
from skfairrank.metrics import (
    neg_group_exposure_disparity_scorer,
    stochastic_ndcg_scorer,
)
from skfairrank.model_selection import QueryKFold, best_under

matplotlib = pytest.importorskip("matplotlib")
Text = pytest.importorskip("matplotlib.text").Text


@pytest.fixture(scope="module")
def task():
    return make_biased_ranking(n_queries=20, n_items=5, random_state=0)


@pytest.fixture(scope="module")
def ranker(task):
    return SenSTIRRanker([[0, 1]], rho=0.01, max_iter=120, random_state=0).fit(task.data, task.target, qid=task.qid)


@pytest.fixture(scope="module")
def search(task):
    """Candidates 0, 1, 2 with rho 0, .01, 1."""
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), SenSTIRRanker([[0, 1]], max_iter=60, random_state=0))
        return GridSearchCV(
            pipe,
            {"senstirranker__rho": [0.0, 0.01, 1.0]},
            cv=QueryKFold(4),
            scoring={"ndcg": stochastic_ndcg_scorer, "gap": neg_group_exposure_disparity_scorer},
            refit=best_under("ndcg", max_loss=1.0, then="gap"),
        ).fit(task.data, task.target, qid=task.qid, sensitive_features=task.sensitive_features)


# score contours


def test_contours_show_the_scores_and_the_items(plt, task, ranker):
    display = ScoreContourDisplay.from_estimator(ranker, task.data, task.target, name="SenSTIR")
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    np.testing.assert_allclose(display.response.ravel(), ranker.predict(grid))
    np.testing.assert_array_equal(display.points_.get_offsets(), task.data)
    np.testing.assert_array_equal(display.points_.get_array(), task.target)
    assert (
        display.contours_.levels[0] <= display.response.min() <= display.response.max() <= display.contours_.levels[-1]
    )


def test_two_of_many_features_by_name_with_the_others_at_their_median(plt, task):
    frame = pd.DataFrame({"a": task.data[:, 0], "noise": np.arange(100) / 50, "b": task.data[:, 1]})
    fitted = PlackettLuceRanker(max_iter=30, random_state=0).fit(frame, task.target, qid=task.qid)
    display = ScoreContourDisplay.from_estimator(fitted, frame, features=("a", "b"), grid_resolution=7)
    grid = np.column_stack([display.xx0.ravel(), np.full(49, frame["noise"].median()), display.xx1.ravel()])
    np.testing.assert_allclose(display.response.ravel(), grid @ fitted.coef_)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("a", "b")
    assert display.relevance_colorbar_ is None


def test_contour_errors(plt, task, ranker):
    with pytest.raises(ValueError, match="one relevance per row"):
        ScoreContourDisplay.from_estimator(ranker, task.data, task.target[:3])


# rank displacement


def test_heatmap_shows_the_displacement(plt, task, ranker):
    kw = {"qid": task.qid, "n_samples": 6}
    ranks, other = (ranker.sample_rankings(task.data, random_state=seed, **kw) for seed in (0, 1))
    display = RankDisplacementDisplay.from_predictions(ranks, other, qid=task.qid)
    expected = rank_displacement(ranks, other, qid=task.qid)
    np.testing.assert_array_equal(display.im_.get_array(), expected)
    np.testing.assert_array_equal(display.displacement, expected)
    # ranks, not positions, on the axes: the first row of pixels is centred at rank 1
    assert list(display.im_.get_extent()) == [0.5, 5.5, 5.5, 0.5] and list(display.ax_.get_xticks()) == [1, 2, 3, 4, 5]
    assert display.ax_.get_title() == f"{np.trace(expected) / 5:.0%} keep their rank"
    assert display.im_.get_clim() == (0.0, 1.0) and display.colorbar_.ax.get_ylabel() == "share of items"


# trade-off


def test_tradeoff_draws_a_line_for_each_system(plt):
    x, y, xerr, yerr = np.arange(5.0), np.arange(5.0) ** 2, np.full(5, 0.1), np.linspace(0.1, 0.5, 5)
    labels = ["b", "a", "b", "b", "a"]
    display = TradeoffDisplay.from_predictions(
        x,
        y,
        xerr=xerr,
        yerr=yerr,
        labels=labels,
        annotations=[0.5, 1, "c", 0.1, 2.0],
        chosen=3,
        xlabel="NDCG",
        ylabel="tau",
    )
    assert list(display.lines_) == ["b", "a"]  # in order of appearance
    for k, (system, rows) in enumerate({"b": [0, 2, 3], "a": [1, 4]}.items()):
        line, _, bars = display.lines_[system]
        np.testing.assert_array_equal(np.column_stack(line.get_data()), np.column_stack([x, y])[rows])
        assert line.get_color() == COLORS[k]
        for bar, coordinate, error in zip(bars, (0, 1), (xerr, yerr), strict=True):
            ends = np.array([segment[:, coordinate] for segment in bar.get_segments()])
            np.testing.assert_allclose(np.diff(ends, axis=1)[:, 0] / 2, error[rows])
    np.testing.assert_array_equal(np.column_stack(display.chosen_.get_data()), [[3.0, 9.0]])
    assert [text.get_text() for text in display.texts_] == ["0.5", "1", "c", "0.1", "2"]
    assert [text.get_text() for text in display.legend_.get_texts()] == ["chosen", "b", "a"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("NDCG", "tau")


def test_tradeoff_of_a_search_with_standard_errors_and_the_chosen(plt, search):
    display = TradeoffDisplay.from_search(search, x="ndcg", y="gap")
    results = search.cv_results_
    order = np.array([0, 1, 2])  # of rho, the only parameter searched
    np.testing.assert_array_equal(display.x, results["mean_test_ndcg"])
    np.testing.assert_array_equal(display.y, -results["mean_test_gap"])  # a disparity, as it is
    assert (display.y >= 0).all()
    # std_test is over 4 folds with ddof=0: its standard error is std / sqrt(4 - 1)
    np.testing.assert_allclose(display.xerr, results["std_test_ndcg"][order] / np.sqrt(3))
    np.testing.assert_allclose(display.yerr, results["std_test_gap"][order] / np.sqrt(3))
    assert order[display.chosen] == search.best_index_
    assert [text.get_text() for text in display.texts_] == [f"{[0, 0.01, 1][k]:g}" for k in order]
    assert display.legend_.get_title().get_text() == "numbers: rho"


def searched(best_index=None, **columns):
    """A search that holds these results."""
    return SimpleNamespace(cv_results_=columns, best_index_=best_index)


def test_tradeoff_systems_by_a_parameter_and_failed_candidates(plt):
    results = {
        "param_ranker": np.ma.array([PlackettLuceRanker(), RandomRanker(), RandomRanker()], mask=False, dtype=object),
        "param_ranker__rho": np.ma.array([0.5, 0, 0], mask=[False, True, False], dtype=object),
        "mean_test_neg_a": np.array([-0.3, -0.2, np.nan]),
        "mean_test_b": np.array([1.0, 2.0, 3.0]),
        "split0_test_neg_a": np.array([-0.2, -0.2, np.nan]),
        "split1_test_neg_a": np.array([-0.4, -0.2, np.nan]),
        "split0_test_neg_a_test_a": np.array([9.0, 9.0, 9.0]),  # another scorer, with an unfortunate name
    }
    display = TradeoffDisplay.from_search(searched(**results), x="neg_a", y="b", label_by="ranker", annotate_by="rho")
    np.testing.assert_array_equal(display.x, [0.2, 0.3])  # the sign is turned
    np.testing.assert_allclose(display.xerr, [0.0, 0.1])  # .2 and .4: deviation .1 sqrt(2), by the root of two folds
    assert list(display.lines_) == ["RandomRanker", "PlackettLuceRanker"]
    assert [text.get_text() for text in display.texts_] == ["0.5"] and display.ax_.get_xlabel() == "a"


def results_of(x, **parameters):
    columns = {f"param_{name}": np.ma.array(values, dtype=object) for name, values in parameters.items()}
    return searched(**columns, mean_test_a=np.asarray(x, float), mean_test_b=np.arange(float(len(x))))


RHOS = [1.0, 0.0, 0.01, 10.0]


def test_tradeoff_joins_candidates_in_the_order_of_a_parameter(plt):
    """Of rho above, whatever x does; without numbers, and in a system without any, in the order of x."""
    for parameters, arguments, joined in [
        ({"rho": RHOS}, {}, {None: [0.1, 0.2, 0.3, 0.25]}),
        ({"rho": [1, 0, 0, 1], "alpha": [0.1, 0.1, 0.2, 0.2]}, {"annotate_by": "rho"}, {None: [0.1, 0.2, 0.25, 0.3]}),
        ({"gain": ["exp2", "linear", "exp2", "linear"]}, {}, {None: [0.1, 0.2, 0.25, 0.3]}),
        (
            {"kind": ["s", "t", "t", "s"], "rho": np.ma.array([1, 0, 0, 0], mask=[0, 1, 1, 0])},
            {"label_by": "kind", "annotate_by": "rho"},
            {"t": [0.1, 0.2], "s": [0.25, 0.3]},
        ),
    ]:
        display = TradeoffDisplay.from_search(
            results_of([0.3, 0.1, 0.2, 0.25], **parameters), x="a", y="b", **arguments
        )
        assert {system: line[0].get_xdata().tolist() for system, line in display.lines_.items()} == joined


def overlap(a, b):
    return min(a[2], b[2]) > max(a[0], b[0]) and min(a[3], b[3]) > max(a[1], b[1])


def test_tradeoff_labels_keep_off_markers_bars_and_each_other(plt):
    x, y = np.array([0.85, 0.85, 0.849, 0.84, 0.82, 0.8]), np.array([1, 0.99, 0.98, 0.7, 0.3, 0.1])
    figure, ax = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
    errors = {"xerr": np.full(6, 0.1 * np.ptp(x)), "yerr": np.full(6, 0.1 * np.ptp(y))}
    display = TradeoffDisplay.from_predictions(x, y, annotations=np.geomspace(1e-4, 10, 6), chosen=0, ax=ax, **errors)
    figure.canvas.draw()
    boxes, (line, _, bars) = [], display.lines_[None]
    half = line.get_markersize() / 2 * figure.dpi / 72
    for point in ax.transData.transform(line.get_xydata()):
        boxes.append((*(point - half), *(point + half)))
    for segment in (segment for bar in bars for segment in bar.get_segments()):
        ends = ax.transData.transform(segment)
        boxes.append((*ends.min(axis=0), *ends.max(axis=0)))
    x0, y0, x1, y1 = ax.bbox.extents
    for text in display.texts_:
        label = Text.get_window_extent(text).extents  # without lines
        assert label[0] >= x0 and label[1] >= y0 and label[2] <= x1 and label[3] <= y1, f"{text} leaves the axes"
        assert not any(overlap(label, box) for box in boxes), f"{text} covers something"
        assert np.hypot(*(ax.transData.transform(text.xy) - label.reshape(2, 2).mean(axis=0))) < 90 * figure.dpi / 72
        boxes.append(label)


def test_a_label_is_nearest_to_its_own_point_or_tied_to_it(plt):
    """Two clusters of three points; a legend that comes later makes the axes smaller."""
    x, y = np.array([0.912, 0.9125, 0.913, 0.93, 0.9305, 0.931]), np.array([0.99, 0.985, 0.975, 0.86, 0.852, 0.845])
    figure, ax = plt.subplots(layout="constrained")
    display = TradeoffDisplay.from_predictions(x, y, annotations=range(6), chosen=4, ax=ax, legend=False)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", title="\n".join("legend"))
    figure.canvas.draw()
    points, tied = ax.transData.transform(np.column_stack([x, y])), 0
    for own, text in enumerate(display.texts_):
        box = Text.get_window_extent(text)
        distances = np.hypot(*np.maximum([box.min - points, points - box.max], 0).max(axis=0).T)
        tied += text.arrow_patch.get_visible()
        assert distances.argmin() == own or text.arrow_patch.get_visible()
    assert 0 < tied < 6


def test_tradeoff_errors(plt, search):
    with pytest.raises(ValueError, match="yerr has 1 entries and x has 2"):
        TradeoffDisplay.from_predictions([1, 2], [1, 2], yerr=[1])
    with pytest.raises(ValueError, match="chosen=2"):
        TradeoffDisplay.from_predictions([1, 2], [1, 2], chosen=2)
    with pytest.raises(ValueError, match="no scorer 'tau'; it has \\['gap', 'ndcg'\\]"):
        TradeoffDisplay.from_search(search, x="ndcg", y="tau")


# training history


def test_history_shows_values_and_their_moving_average(plt, ranker):
    display = TrainingHistoryDisplay.from_estimator(ranker, ax=plt.subplots(4, 2)[1][:, 1])
    assert all(panel.get_ylabel() and panel.yaxis.get_tick_params()["labelleft"] for panel in display.axes_)
    assert list(display.lines_) == ["utility", "regularizer", "query_distance", "lambda"]
    for name, values in ranker.history_.items():
        np.testing.assert_array_equal(display.raw_lines_[name].get_data(), [np.arange(1, 121), values])
        # a fiftieth of 120 steps is 2: each step and the next
        expected = np.r_[(values[:-1] + values[1:]) / 2, values[-1]]
        np.testing.assert_allclose(display.lines_[name].get_ydata(), expected, rtol=1e-9, atol=1e-12)
    assert len(display.axes_) == 4 and display.ax_ is display.axes_[0]
    budget = [line for line in display.axes_[2].lines if line.get_linestyle() == "--"]
    assert budget[0].get_ydata()[0] == 0.01


def test_history_without_regulariser_is_the_utility_alone(plt, task):
    plain = PlackettLuceRanker(max_iter=10, random_state=0).fit(task.data, task.target, qid=task.qid)
    display = TrainingHistoryDisplay.from_estimator(make_pipeline("passthrough", plain), name="mine")
    assert list(display.lines_) == ["utility"] and len(display.axes_) == 1 and display.ax_.get_title() == "mine"
    np.testing.assert_array_equal(display.lines_["utility"].get_ydata(), plain.history_["utility"])


# path


@pytest.fixture(scope="module")
def path(task):
    X = np.column_stack([task.data, np.random.default_rng(0).normal(size=len(task.data))])
    return senstir_path(X, task.target, qid=task.qid, metric=[[0, 1, 0]], n_rhos=6)


def test_lines_are_the_path(plt, path):
    display = PathDisplay.from_path(path)
    for j, line in enumerate(display.lines_):
        np.testing.assert_array_equal(line.get_xdata(), path.rhos)
        np.testing.assert_array_equal(line.get_ydata(), path.coefs[:, j])
    np.testing.assert_array_equal(display.utility_line_.get_ydata(), path.utilities)
    np.testing.assert_array_equal(display.regularizer_line_.get_ydata(), path.regularizers)


def test_path_errors(plt, path):
    with pytest.raises(ValueError, match="2 entries for 3 features"):
        PathDisplay.from_path(path, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="'age'"):
        PathDisplay.from_path(path, named=["age"])


# all of them


@pytest.fixture
def displays(task, ranker, path):
    ranks = ranker.sample_rankings(task.data, qid=task.qid, n_samples=2, random_state=0)
    return {
        "contours": lambda **kw: ScoreContourDisplay.from_estimator(ranker, task.data, task.target, **kw),
        "displacement": lambda **kw: RankDisplacementDisplay.from_predictions(ranks, ranks, qid=task.qid, **kw),
        "tradeoff": lambda **kw: TradeoffDisplay.from_predictions([1, 2], [3, 4], labels=["a", "b"], **kw),
        "history": lambda **kw: TrainingHistoryDisplay.from_estimator(ranker, **kw),
        "path": lambda **kw: PathDisplay.from_path(path, **kw),
    }


@pytest.mark.parametrize("name", ["contours", "displacement", "tradeoff", "history", "path"])
def test_every_display_draws_where_it_is_told_and_again(plt, displays, name, tmp_path):
    figure, ax = plt.subplots(layout="constrained")
    display = displays[name](ax=ax)
    assert display.figure_ is figure
    first = display.ax_
    assert display.plot() is display and display.ax_ is not first and display.figure_ is not figure
    for drawn in (figure, display.figure_):
        drawn.savefig(tmp_path / "figure.png")


@pytest.mark.parametrize("name", ["contours", "displacement", "tradeoff", "history", "path"])
def test_without_matplotlib_the_error_says_what_installs_it(displays, name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib .*in a clone.* \"\.\[plots\]\""):
        displays[name]()
