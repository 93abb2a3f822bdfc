"""XGBoost: its ranker takes no objective of ours, so its parameters train a booster, which is then loaded into a ranker."""

from __future__ import annotations

import numpy as np

from skfairrank._boosting._evaluation import SortedUtility
from skfairrank._boosting._rows import Blocks

__all__ = ["XGBoost"]

_ALLOWED = {"objective": (None, "rank:ndcg"), "booster": (None, "gbtree")}
_REASONS = {
    "objective": "the objective is utility minus rho times the regulariser; only rank:ndcg, the default, is understood as that",
    "booster": "the adversary needs scores to which each round adds one tree: booster must be 'gbtree'",
}
_OF_OBJECTIVE = "it belongs to XGBoost's own objective; here `utility` says what is maximised"
_BINNED = (None, "auto", "hist")


class XGBoost:
    """Fits clones of an `XGBRanker`.

    Parameters
    ----------
    estimator : XGBRanker
        Not changed.

    Raises
    ------
    ValueError
        If a parameter asks for what can't be had here.
    """

    name, query_argument = "XGBoost", "qid"
    #: Arguments of `fit` that are passed on.
    fit_arguments = ("verbose",)

    def __init__(self, estimator):
        self.estimator, self.parameters = estimator, estimator.get_params()
        for name, values in _ALLOWED.items():
            value = self.parameters.get(name)
            if callable(value) or value not in values:
                raise ValueError(
                    f"{name}={value!r} of XGBoost can't be had in SenSTIRBoostingRanker: {_REASONS[name]}."
                )
        for name, value in self.parameters.items():
            if value is not None and name.startswith(("lambdarank_", "ndcg_")):
                raise ValueError(f"{name}={value!r} of XGBoost can't be had in SenSTIRBoostingRanker: {_OF_OBJECTIVE}.")

    @property
    def n_rounds(self) -> int:
        return self.estimator.get_num_boosting_rounds()

    def fit(self, model, X, y, sizes: np.ndarray, objective, evaluation: SortedUtility, arguments: dict):
        """Fit a clone of the estimator, as `LightGBM.fit`; arguments may be `verbose`, and `eval_set` with `eval_qid`."""
        import xgboost

        settings = model.get_xgb_params()
        if settings.get("base_score") is None:
            settings["base_score"] = 0.0  # a constant, which changes no ranking
        if settings.get("eval_metric") is None:
            settings["disable_default_eval_metric"] = True
        weights = settings.pop("feature_weights", None)
        n_blocks = X.shape[0] // len(y)
        X = X.table() if isinstance(X, Blocks) else X
        train = self._matrix(X, np.tile(y, n_blocks), np.tile(sizes, n_blocks))
        if weights is not None:
            train.set_info(feature_weights=weights)
        evals = [
            (self._matrix(rows, labels, np.unique(ids, return_counts=True)[1], train), f"validation_{k}")
            for k, ((rows, labels), ids) in enumerate(zip(arguments.get("eval_set", ()), arguments.get("eval_qid", ())))
        ]
        found: dict = {}
        booster = xgboost.train(
            settings,
            train,
            num_boost_round=self.n_rounds,
            evals=evals,
            obj=lambda scores, _: objective(None, scores),
            custom_metric=_as_metric(evaluation) if evals else None,
            maximize=True if evals else None,
            early_stopping_rounds=self.parameters.get("early_stopping_rounds"),
            evals_result=found,
            verbose_eval=arguments.get("verbose", False),
            callbacks=self.parameters.get("callbacks"),
        )
        return self._loaded(model, booster, found)

    def _matrix(self, X, y, sizes, reference=None):
        import xgboost

        settings = {
            "label": y,
            "missing": self.parameters.get("missing", np.nan),
            "nthread": self.parameters.get("n_jobs"),
            "enable_categorical": bool(self.parameters.get("enable_categorical")),
            "feature_types": self.parameters.get("feature_types"),
        }
        if self.parameters.get("tree_method") in _BINNED and not hasattr(X, "tocsr"):
            bins = 256 if self.parameters.get("max_bin") is None else self.parameters["max_bin"]
            matrix = xgboost.QuantileDMatrix(X, ref=reference, max_bin=bins, **settings)
        else:
            matrix = xgboost.DMatrix(X, **settings)
        matrix.set_info(group=sizes)
        return matrix

    def _loaded(self, model, booster, found):
        """The ranker with this booster, by the library's own way to load one, and the user's parameters."""
        model.load_model(booster.save_raw())
        for name, value in self.parameters.items():
            if getattr(model, name, value) is not value:  # loading has set those that the booster knows
                setattr(model, name, value)
        if found:
            model.evals_result_ = found
        return model


def _as_metric(evaluation: SortedUtility):
    def metric(scores, matrix):
        sizes = np.diff(matrix.get_uint_info("group_ptr").astype(np.int64))
        name, value, _ = evaluation(matrix.get_label(), scores, None, sizes)
        return name, value

    return metric
