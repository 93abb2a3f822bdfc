"""XGBoost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skfairrank.wrappers._library import Library, not_negligible, own_weights, parameters_of

_BINNED = (None, "auto", "hist")


class XGBoost(Library):
    """Its ranker takes no foreign objective, so its parameters train a booster, which is then loaded into a ranker."""

    name, ranker = "XGBoost", "XGBRanker"
    objectives = ("objective",)
    models = ("xgb_model",)
    not_per_row = ("feature_weights", "eval_metric")
    per_eval_set = ("sample_weight_eval_set", "base_margin_eval_set")
    weights = ("sample_weight", "sample_weight_eval_set")
    weighs_queries = True
    absent = np.nan
    column_weights = ("feature_weights",)
    weighs_gains = False
    column_sampling = ("colsample_bytree", "colsample_bylevel", "colsample_bynode")
    fit_arguments = ("verbose",)
    default_learning_rate = 0.3
    refused = {
        ("objective",): ((None, "rank:ndcg"), "the objective is utility minus rho times the regulariser"),
        ("booster",): ((None, "gbtree"), "each round must add one tree to the scores"),
        ("sampling_method",): ((None, "uniform"), "it drops rows without gradient, as most hypothetical rows are"),
        ("scale_pos_weight",): ((None, 1), "rows have no weights by their label; queries have, by query_weight in fit"),
        ("lambdarank_*", "ndcg_*"): (
            (None,),
            "it belongs to XGBoost's own objective; here `utility` says what is maximised",
        ),
    }

    def as_seen(self, column, parameters):
        mark = parameters.get("missing")
        has_mark = mark is not None and pd.api.types.is_numeric_dtype(column.dtype)
        return column.mask(column == mark) if has_mark else column

    def named_categories(self, estimator, arguments):
        types = parameters_of(estimator).get("feature_types")
        return set() if types is None or isinstance(types, str) else {j for j, kind in enumerate(types) if kind == "c"}

    def weigh_columns(self, estimator, weights, arguments):
        if parameters_of(estimator).get("booster") == "gblinear":
            raise ValueError(
                "booster='gblinear' takes no weights of columns, so that gaps would change nothing: leave it out, or take "
                'SenSTIRRanker(adversary="gaps"), a linear ranker.'
            )
        if "feature_weights" in parameters_of(estimator):
            return super().weigh_columns(estimator, weights, arguments)
        own = own_weights(arguments.get("feature_weights"), "feature_weights", weights.index)  # before 3.0, of `fit`
        return {**arguments, "feature_weights": not_negligible(weights.to_numpy() * own)}

    def boost(self, model, blocks, y, sizes, objective, metric, arguments):
        import xgboost

        parameters, settings = model.get_params(), model.get_xgb_params()
        if settings.get("base_score") is None:
            settings["base_score"] = 0.0  # a constant, which changes no ranking
        if callable(parameters.get("eval_metric")):
            raise ValueError(
                "eval_metric is a function, which XGBoost takes with its own objective only: name one of its metrics, or leave "
                "it out (evaluation sets are judged by `utility`)."
            )
        if settings.get("eval_metric") is None:
            settings["disable_default_eval_metric"] = True
        settings.pop("feature_weights", None)  # before 3.0 among them
        weights = parameters.get("feature_weights")
        labels, groups = np.tile(y, blocks.n_blocks), np.tile(sizes, blocks.n_blocks)
        train = _matrix(parameters, blocks.table(np.float32), labels, groups)
        if weights is not None:
            train.set_info(feature_weights=weights)
        evals = [
            (_matrix(parameters, rows, labels, np.unique(ids, return_counts=True)[1], train), f"validation_{k}")
            for k, ((rows, labels), ids) in enumerate(zip(arguments.get("eval_set", ()), arguments.get("eval_qid", ())))
        ]
        found: dict = {}
        booster = xgboost.train(
            settings,
            train,
            num_boost_round=model.get_num_boosting_rounds(),
            evals=evals,
            obj=lambda scores, _: objective(None, scores),
            custom_metric=_as_metric(metric) if evals else None,
            maximize=True if evals else None,
            early_stopping_rounds=parameters.get("early_stopping_rounds"),
            evals_result=found,
            verbose_eval=arguments.get("verbose", False),
            callbacks=parameters.get("callbacks"),
        )
        model.load_model(booster.save_raw())
        for name, value in parameters.items():
            if getattr(model, name, value) is not value:  # loading has set those that the booster knows
                setattr(model, name, value)
        if found:
            model.evals_result_ = found
        return model


def _matrix(parameters, X, y, sizes, reference=None):
    import xgboost

    settings = {
        "label": y,
        "missing": parameters.get("missing", np.nan),
        "nthread": parameters.get("n_jobs"),
        "enable_categorical": bool(parameters.get("enable_categorical")),
        "feature_types": parameters.get("feature_types"),
    }
    if parameters.get("tree_method") in _BINNED and not hasattr(X, "tocsr"):
        bins = 256 if parameters.get("max_bin") is None else parameters["max_bin"]
        matrix = xgboost.QuantileDMatrix(X, ref=reference, max_bin=bins, **settings)
    else:
        matrix = xgboost.DMatrix(X, **settings)
    matrix.set_info(group=sizes)
    return matrix


def _as_metric(metric):
    def custom_metric(scores, matrix):
        sizes = np.diff(matrix.get_uint_info("group_ptr").astype(np.int64))
        return metric(matrix.get_label(), scores, None, sizes)[:2]

    return custom_metric
