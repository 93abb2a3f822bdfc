"""Training and measuring on more rows than memory holds: Parquet files, and arrays on a disk."""

from skfairrank.ranking_files._arrays import ArrayRanking
from skfairrank.ranking_files._evaluation import evaluate_in_chunks
from skfairrank.ranking_files._parquet import ParquetRanking
from skfairrank.ranking_files._source import RankingChunk, RankingSource

__all__ = ["ArrayRanking", "ParquetRanking", "RankingChunk", "RankingSource", "evaluate_in_chunks"]
