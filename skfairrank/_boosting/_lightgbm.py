"""LightGBM: its ranker is fitted with an objective of ours, and then carries the user's parameters again."""

from __future__ import annotations

import numpy as np

from skfairrank._boosting._evaluation import SortedUtility

__all__ = ["LightGBM"]

# LightGBM's names of parameters, the first of which says what is meant.
_OBJECTIVES = ("objective", "objective_type", "app", "application", "loss")
_METRICS = ("metric", "metrics", "metric_types")
_LEAF_SIZES = ("min_child_samples", "min_data_in_leaf", "min_data_per_leaf", "min_data", "min_samples_leaf")
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
        X : table, shape (n_blocks * n_rows, n_features)
            The rows and, block by block, their hypothetical rows.
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
        model.fit(X, np.tile(y, n_blocks), group=np.tile(sizes, n_blocks), **arguments)
        callback.objective = None
        return model.set_params(**self._changed())

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


class _Forgetful:
    """An objective that the fitted model can keep without the data behind it, so that it can be pickled and is small."""

    def __init__(self, objective):
        self.objective = objective

    def __call__(self, y_true, y_pred):
        return self.objective(y_true, y_pred)

    def __deepcopy__(self, memo):
        """Itself, since LightGBM copies its parameters, and the history is wanted from the one that works."""
        return self
