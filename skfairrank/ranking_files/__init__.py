"""Training and measuring on more rows than memory holds: Parquet files, and arrays on a disk."""

from skfairrank.ranking_files._parquet import ParquetRanking
from skfairrank.ranking_files._source import RankingChunk, RankingSource

__all__ = ["ParquetRanking", "RankingChunk", "RankingSource"]
