"""Re-ranking: fairer rankings from the scores of any ranker, which need not be trained again."""

from skfairrank.postprocessing._det_const_sort import DetConstSortRanker
from skfairrank.postprocessing._exposure_lp import ExposureLPRanker
from skfairrank.postprocessing._fa_star import FAStarRanker
from skfairrank.postprocessing._fair_score_smoother import FairScoreSmoother

__all__ = ["FairScoreSmoother", "FAStarRanker", "DetConstSortRanker", "ExposureLPRanker"]
