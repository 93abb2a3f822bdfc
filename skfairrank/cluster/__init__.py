"""Past one machine: searches, paths and starts on the workers of a Dask cluster, and training that they share."""

from skfairrank.cluster._data_parallel import fit_on_workers
from skfairrank.cluster._joblib import on_workers

__all__ = ["fit_on_workers", "on_workers"]
