"""CatBoost."""

from __future__ import annotations

from skfairrank.wrappers._library import Library, of_queries, parameters_of


class CatBoost(Library):
    """Its ranker takes no rows without gradient, so there is no `boost`."""

    name, ranker = "CatBoost", "CatBoostRanker"
    objectives = ("loss_function", "objective")
    models = ("init_model",)
    not_per_row = ("cat_features", "text_features", "embedding_features")
    row_numbers = ("pairs", "graph", "pairs_weight")
    categorical = ("cat_features",)
    column_weights = ("feature_weights",)
    column_sampling = ("rsm", "colsample_bylevel")

    def evaluation(self, argument, Xs, ys, queries, taken, known):
        from catboost import Pool  # only a pair without queries could be passed otherwise

        columns = {name: known.get(name) for name in self.not_per_row}
        ids = [None if argument is None else of_queries(argument, groups) for groups in queries]
        return {"eval_set": [Pool(X, y, group_id=group_id, **columns) for X, y, group_id in zip(Xs, ys, ids)]}

    def weigh_columns(self, estimator, weights, arguments):
        arguments = super().weigh_columns(estimator, weights, arguments)
        # Noise makes some gains negative before they are weighed, and these become the better, the smaller the weight.
        if parameters_of(estimator).get("random_strength") is None:
            estimator.set_params(random_strength=0)
        return arguments
