"""LightGBM: its ranker is fitted with an objective of ours, and then carries the user's parameters again."""

from __future__ import annotations

import numpy as np

from skfairrank._boosting._evaluation import SortedUtility
from skfairrank._boosting._rows import Blocks

__all__ = ["LightGBM"]

# LightGBM's names of parameters, the first of which says what is meant.
_OBJECTIVES = ("objective", "objective_type", "app", "application", "loss")
_METRICS = ("metric", "metrics", "metric_types")
_LEAF_SIZES = ("min_child_samples", "min_data_in_leaf", "min_data_per_leaf", "min_data", "min_samples_leaf")
_VERBOSITIES = ("verbose", "verbosity")
_HISTOGRAMS = ("force_col_wise", "force_row_wise")
_SAMPLES = ("subsample_for_bin", "bin_construct_sample_cnt")
#: Parameters that change what boosting does with gradients, with the values that can be had.
_ALLOWED: dict[tuple, tuple] = {
    _OBJECTIVES: (None, "lambdarank"),
    ("boosting_type", "boosting", "boost"): (None, "gbdt", "gbrt"),
    ("data_sample_strategy",): (None, "bagging"),
    ("linear_tree", "linear_trees"): (None, False),
    ("class_weight",): (None,),
    ("lambdarank_truncation_level", "lambdarank_norm", "label_gain", "sigmoid", "max_position"): (None,),
}
_REASONS = {
    "objective": "the objective is utility minus rho times the regulariser; only lambdarank, the default, is understood as that",
    "boosting_type": "the adversary needs scores to which each round adds one tree: boosting_type must be 'gbdt'",
    "data_sample_strategy": "goss keeps rows with large gradients, and most hypothetical rows have none: use 'bagging'",
    "linear_tree": "linear trees keep all rows with their raw features, and fit leaves without gradient to nothing",
    "class_weight": "rows of a query have no weights of their own: use query_weight in fit",
    "lambdarank_truncation_level": "it belongs to LightGBM's own objective; here `utility` says what is maximised",
}


class LightGBM:
    """Fits clones of an `LGBMRanker`.

    Parameters
    ----------
    estimator : LGBMRanker
        Not changed.

    Raises
    ------
    ValueError
        If a parameter asks for what can't be had here.
    """

    name, query_argument = "LightGBM", "group"
    #: Arguments of `fit` that are passed on.
    fit_arguments = ("callbacks", "categorical_feature", "feature_name", "eval_names")

    def __init__(self, estimator):
        self.estimator, self.parameters = estimator, estimator.get_params()
        for names, values in _ALLOWED.items():
            for name in names:
                value = self.parameters.get(name)
                if callable(value) or value not in values:
                    raise ValueError(
                        f"{name}={value!r} of LightGBM can't be had in SenSTIRBoostingRanker: {_REASONS[names[0]]}."
                    )

    @property
    def n_rounds(self) -> int:
        return int(self.parameters["n_estimators"])

    def fit(self, model, X, y, sizes: np.ndarray, objective, evaluation: SortedUtility, arguments: dict):
        """Fit a clone of the estimator.

        Parameters
        ----------
        model : LGBMRanker
            A fresh clone, which is fitted.
        X : Blocks or table, shape (n_blocks * n_rows, n_features)
            The rows and, block by block, their hypothetical rows. Of `Blocks` one at a time is in memory, unless there is an
            evaluation set.
        y : ndarray, shape (n_rows,)
        sizes : ndarray of int64, shape (n_queries,)
        objective : FairObjective
        evaluation : SortedUtility
        arguments : dict
            Further arguments of LightGBM's `fit`.
        """
        n_blocks = X.shape[0] // len(y)
        callback = _Forgetful(objective)
        model.set_params(objective=callback, **self._by_blocks(n_blocks))
        if not self._given(_METRICS):
            model.set_params(metric="None")  # of its own; "ndcg" otherwise
        if "eval_group" in arguments:
            arguments = {**arguments, "eval_metric": evaluation}
        labels, group = np.tile(y, n_blocks), np.tile(sizes, n_blocks)
        if isinstance(X, Blocks) and "eval_group" not in arguments:
            self._fit_by_blocks(model, X, labels, group, callback, arguments)
        else:
            model.fit(X.table() if isinstance(X, Blocks) else X, labels, group=group, **arguments)
        callback.objective = None
        return model.set_params(**self._changed())

    def _fit_by_blocks(self, model, blocks: Blocks, labels, group, objective, arguments: dict) -> None:
        """Train a booster on rows that LightGBM asks for one after the other, and put it into the model.

        `LGBMRanker.fit` keeps all rows in memory until it is done, in floats beside their bins. So it fits two rows only, without
        growing anything: it checks the arguments, translates the parameters and sets the model's attributes.
        """
        import lightgbm

        about_columns = {name: arguments[name] for name in ("feature_name", "categorical_feature") if name in arguments}
        loud = self._given(_VERBOSITIES)
        model.set_params(objective=self.parameters["objective"], **dict.fromkeys(["verbose", *loud], -1))
        model.fit(np.zeros((2, blocks.shape[1])), [0, 0], group=[2], **about_columns)
        model.set_params(**{"verbose": None, **loud})
        settings = {name: value for name, value in model.booster_.params.items() if name not in _VERBOSITIES}
        settings |= {"objective": lambda scores, _: objective(None, scores), **loud}
        if not self._given(_HISTOGRAMS):
            settings["force_col_wise"] = True  # else two ways are timed, one of which holds the bins twice
        data = _data_of(blocks, labels, group=group, **about_columns)
        booster = lightgbm.train(settings, data, self.n_rounds, callbacks=arguments.get("callbacks"))
        model.booster_.model_from_string(booster.model_to_string())

    def _by_blocks(self, n_blocks: int) -> dict:
        """Numbers of rows among the parameters, for so many times the rows.

        LightGBM takes hessians for numbers of rows: a part with a share of its parent's hessian counts as that share of its
        rows. Hypothetical rows have no hessian unless they are chosen, so each training row counts for all of its block. The
        sample from which bins are made, at 12 bytes for each of its numbers, would be what takes most memory.
        """
        leaves = {name: int(n * n_blocks) for name, n in self._given(_LEAF_SIZES).items()}
        return leaves | {name: -(-int(n) // n_blocks) for name, n in self._given(_SAMPLES).items()}

    def _given(self, names) -> dict:
        values = {name: self.parameters.get(name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def _changed(self) -> dict:
        """The user's own values of what `fit` has set."""
        metric = {} if self._given(_METRICS[1:]) else {"metric": self.parameters.get("metric")}
        objective = {"objective": self.parameters.get("objective")}
        return objective | metric | self._given(_LEAF_SIZES) | self._given(_SAMPLES)


def _data_of(blocks: Blocks, labels, **settings):
    """A data set of LightGBM that reads block by block: first a sample of the rows for the bins, then all of them."""
    import lightgbm

    class Rows(lightgbm.Sequence):
        batch_size = blocks.n_rows

        def __init__(self):
            self.start = len(self)  # of the block at hand; beyond all of them, so that the first row begins a reading

        def __len__(self):
            return blocks.shape[0]

        def __getitem__(self, rows):
            if isinstance(rows, slice):
                return self._block_of(rows.start)
            return self._block_of(rows)[rows - self.start].astype(np.float64)

        def _block_of(self, row):
            if row < self.start:
                self.block, self.start, self.blocks = None, -blocks.n_rows, iter(blocks)
            while row >= self.start + blocks.n_rows:
                self.block = None  # before the next one is made
                self.block, self.start = next(self.blocks), self.start + blocks.n_rows
            return self.block

    class Data(lightgbm.Dataset):
        def get_params(self):
            """All of them: LightGBM's own method leaves out the seed of the sample and the least size of a leaf."""
            return dict(self.params)

    return Data(Rows(), labels, **settings)


class _Forgetful:
    """An objective that the fitted model can keep without the data behind it, so that it can be pickled and is small."""

    def __init__(self, objective):
        self.objective = objective

    def __call__(self, y_true, y_pred):
        return self.objective(y_true, y_pred)

    def __deepcopy__(self, memo):
        """Itself, since LightGBM copies its parameters, and the history is wanted from the one that works."""
        return self
