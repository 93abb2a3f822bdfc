"""LightGBM."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skfairrank.wrappers._library import Library, parameters_of

_OBJECTIVES = ("objective", "objective_type", "app", "application", "loss")
_METRICS = ("metric", "metrics", "metric_types")
_VERBOSITIES = ("verbose", "verbosity")
# Numbers of rows of a leaf, and of the sample from which bins are made.
_LEAF_SIZES = ("min_child_samples", "min_data_in_leaf", "min_data_per_leaf", "min_data", "min_samples_leaf")
_BIN_SAMPLES = ("subsample_for_bin", "bin_construct_sample_cnt")
_ZERO = 1e-35  # what is not larger is zero


class LightGBM(Library):
    """A foreign objective is an argument of its own training; hypothetical rows are read block by block."""

    name, ranker = "LightGBM", "LGBMRanker"
    objectives = _OBJECTIVES
    models = ("init_model",)
    not_per_row = ("feature_name", "categorical_feature", "eval_at", "eval_metric", "eval_names")
    per_eval_set = ("eval_sample_weight", "eval_init_score", "eval_class_weight")
    weights = ("sample_weight", "eval_sample_weight")
    categorical = ("categorical_feature", "cat_feature", "categorical_column", "cat_column", "categorical_features")
    column_weights = ("feature_contri", "feature_contrib", "fc", "fp", "feature_penalty")
    column_sampling = (
        *("colsample_bytree", "feature_fraction", "sub_feature"),
        *("colsample_bynode", "feature_fraction_bynode", "sub_feature_bynode"),
    )
    beside_weights = ("forcedsplits_filename", "fs", "forced_splits_filename", "forced_splits_file", "forced_splits")
    fit_arguments = ("callbacks", "categorical_feature", "feature_name", "eval_names")
    refused = {
        _OBJECTIVES: ((None, "lambdarank"), "the objective is utility minus rho times the regulariser"),
        ("boosting_type", "boosting", "boost"): ((None, "gbdt", "gbrt"), "each round must add one tree to the scores"),
        ("data_sample_strategy",): (
            (None, "bagging"),
            "goss drops rows without gradient, as most hypothetical rows are",
        ),
        ("bagging_by_query",): ((None, False), "LightGBM then grows no tree; without it subsample draws rows"),
        ("linear_tree*",): ((None, False), "a linear fit in leaves without gradient fails"),
        ("class_weight", "is_unbalance", "unbalance*", "scale_pos_weight", "pos_*bagging*", "pos_sub*", "neg_*"): (
            (None, False, 1.0),
            "rows have no weights by their label; queries have, by query_weight in fit",
        ),
        ("lambdarank_*", "label_gain", "sigmoid", "max_position"): (
            (None,),
            "it belongs to LightGBM's own objective; here `utility` says what is maximised",
        ),
    }

    def as_seen(self, column, parameters):
        if not pd.api.types.is_numeric_dtype(column.dtype):
            is_ordered = isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered
            return column.cat.codes.astype(np.float64).replace(-1.0, np.nan) if is_ordered else column
        if parameters.get("use_missing") is False:
            return column.fillna(0)
        return column.where(np.abs(column) > _ZERO) if parameters.get("zero_as_missing") else column

    def importances(self, estimator):
        return estimator.booster_.feature_importance("gain")

    def named_categories(self, estimator, arguments):
        named, names = super().named_categories(estimator, arguments), arguments.get("feature_name", "auto")
        return named if isinstance(names, str) else named | {j for j, name in enumerate(names) if name in named}

    def boost(self, model, blocks, y, sizes, objective, metric, arguments):
        parameters = model.get_params()
        model.set_params(objective=objective, **self._rows_in_blocks(model, blocks.n_blocks))
        if not _given(model, _METRICS):
            model.set_params(metric="None")  # of its own; "ndcg" otherwise
        labels, group = np.tile(y, blocks.n_blocks), np.tile(sizes, blocks.n_blocks)
        changed = {name: parameters.get(name) for name in ("objective", *_LEAF_SIZES, *_BIN_SAMPLES, "metric")}
        try:
            if blocks.are_numbers and blocks.n_blocks > 1 and "eval_group" not in arguments:
                self._read_by_blocks(model, blocks, labels, group, objective, parameters, arguments)
            else:
                model.fit(blocks.table(), labels, group=group, eval_metric=metric, **arguments)
        except Exception as error:
            if "num_features" not in str(error):
                raise
            raise ValueError(
                f"LightGBM finds no column of X to split in {blocks.n_rows} rows: set min_child_samples (now "
                f"{parameters['min_child_samples']}) to at most half of the rows, or give more rows."
            ) from error
        objective.batch = objective.adversary = None  # the model keeps it, which is to be small
        return model.set_params(**{name: changed[name] for name in model.get_params() if name in changed})

    def _read_by_blocks(self, model, blocks, labels, group, objective, parameters, arguments) -> None:
        """Train a booster on rows that LightGBM asks for one after the other, and put it into the model.

        `LGBMRanker.fit` keeps all rows in memory until it is done, in floats beside their bins. So it fits two rows only, without
        growing anything: it checks the arguments, translates the parameters and sets the model's attributes.
        """
        import lightgbm

        about_columns = {name: arguments[name] for name in ("feature_name", "categorical_feature") if name in arguments}
        loud = _given(model, _VERBOSITIES)
        model.set_params(objective=parameters["objective"], **dict.fromkeys(["verbose", *loud], -1))
        model.fit(np.zeros((2, blocks.shape[1])), [0, 0], group=[2], **about_columns)
        model.set_params(**{"verbose": None, **loud})
        settings = {name: value for name, value in model.booster_.params.items() if name not in _VERBOSITIES}
        settings |= {"objective": lambda scores, _: objective(None, scores), **loud}
        if not _given(model, ("force_col_wise", "force_row_wise")):
            settings["force_col_wise"] = True  # else two ways are timed, one of which holds the bins twice
        data = _data_of(blocks, labels, group=group, **about_columns)
        booster = lightgbm.train(settings, data, model.n_estimators, callbacks=arguments.get("callbacks"))
        model.booster_.model_from_string(booster.model_to_string())

    def _rows_in_blocks(self, model, n_blocks: int) -> dict:
        """Numbers of rows among the parameters, for so many times the rows.

        LightGBM takes hessians for numbers of rows: a part with a share of its parent's hessian counts as that share of its
        rows. Hypothetical rows have no hessian unless they are chosen, so each training row counts for all of its block. The
        sample from which bins are made, at 12 bytes for each of its numbers, would be what takes most memory.
        """
        leaves = {name: int(n * n_blocks) for name, n in _given(model, _LEAF_SIZES).items()}
        return leaves | {name: -(-int(n) // n_blocks) for name, n in _given(model, _BIN_SAMPLES).items()}


def _given(model, names) -> dict:
    return {name: value for name, value in parameters_of(model).items() if name in names and value is not None}


def _data_of(blocks, labels, **settings):
    """A data set of LightGBM that reads block by block: first a sample of the rows for the bins, then all of them."""
    import lightgbm

    class Rows(lightgbm.Sequence):
        batch_size, number = blocks.n_rows, blocks.n_blocks  # of the block at hand: the first row begins a reading

        def __len__(self):
            return blocks.shape[0]

        def __getitem__(self, rows):
            if isinstance(rows, slice):
                return self.block_of(rows.start)
            return self.block_of(rows)[rows % blocks.n_rows].astype(np.float64)

        def block_of(self, row):
            if row < self.number * blocks.n_rows:
                self.number, self.blocks = -1, iter(blocks)
            while row >= (self.number + 1) * blocks.n_rows:
                self.block = None  # before the next one is made
                self.block, self.number = next(self.blocks), self.number + 1
            return self.block

    class Data(lightgbm.Dataset):
        def get_params(self):
            """All of them: LightGBM's own method leaves out the seed of the sample and the least size of a leaf."""
            return dict(self.params)

    return Data(Rows(), labels, **settings)
