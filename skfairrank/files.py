"""Parquet files larger than memory, as arrays on a disk and in chunks of whole queries. Needs pyarrow."""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skfairrank._checks import as_values, check_relevance, warn_caller
from skfairrank._queries import Queries

__all__ = ["iter_ranking", "read_ranking"]

# Rows that are decoded at once. Bytes read at once of each column: without a bound pyarrow reads whole row groups.
_ROWS, _BUFFER = 1 << 15, 1 << 18
# How the names of files in a folder end.
_ENDINGS = (".parquet", ".parq", ".pq")


def read_ranking(
    path, *, y="y", qid="qid", features=None, sensitive_features=None, query_weight=None, dtype=None, folder=None
) -> Bunch:
    """Write the features of Parquet files to one memory-mapped array, and return it with what else `fit` takes.

    ``ranker.fit(data.X, data.y, qid=data.qid)`` trains on the array where it lies: neither is it copied, nor has it to fit in
    memory. So do `predict`, metrics and audits. Memory holds the other columns, and for each row the few numbers of a fit.

    Parameters
    ----------
    path : path-like, or list of path-like
        A file; a folder, of which all files that end in .parquet, .parq or .pq are read in the order of their names ("part.2"
        before "part.10"), also within other folders, without names that begin with "_" or "."; or a list of these.
    y : str, default="y"
        Column of the relevances.
    qid : str, default="qid"
        Column of the query ids.
    features : list of str, optional
        Columns of the features. Default: all that have no other part here; then all files must have the same ones.
    sensitive_features : str or list of str, optional
        Columns of the sensitive attributes. They are no features unless `features` names them.
    query_weight : str, optional
        Column of the weights of the queries, equal within a query.
    dtype : dtype, optional
        Of X. Default: float32 where all features are float32 or smaller, else float64.
    folder : path-like, optional
        Where the array is written, as X.npy, which stays there: ``np.load(path, mmap_mode="r")`` opens it again. Default: a
        temporary file (the environment variable TMPDIR names the folder), removed once nothing uses the array.

    Returns
    -------
    data : Bunch
        ``X``, a memory map of shape (n_rows, n_features); ``y``; ``qid``; ``sensitive_features``, a Series or DataFrame, or None;
        ``query_weight``, or None; and ``feature_names``. Where ids do not ascend in the files, rows are sorted by query.

    Raises
    ------
    FileNotFoundError, FileExistsError
        If there are no files, or `folder` has an X.npy.
    ValueError, TypeError
        If a file is no Parquet file, lacks a column or has one of another type; if features are missing, infinite or no
        numbers; or if relevances or ids are none.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from skfairrank import PlackettLuceRanker
    >>> from skfairrank.datasets import make_biased_ranking
    >>> from skfairrank.files import read_ranking
    >>> task = make_biased_ranking(n_queries=50, random_state=0)
    >>> table = pd.DataFrame(task.data, columns=["merit", "proxy"]).assign(
    ...     y=task.target, qid=task.qid
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.to_parquet(Path(folder) / "rows.parquet")
    ...     data = read_ranking(folder)
    >>> ranker = PlackettLuceRanker(random_state=0).fit(data.X, data.y, qid=data.qid)
    >>> in_memory = PlackettLuceRanker(random_state=0).fit(
    ...     task.data, task.target, qid=task.qid
    ... )
    >>> bool((ranker.coef_ == in_memory.coef_).all())
    True
    """
    files = _Files.of(path, y, qid, features, sensitive_features, query_weight, dtype)
    data = files.others(files.read(files.other_columns))
    queries = Queries.from_qid(data.qid, len(data.y), name=qid)
    place = np.empty(len(data.y), np.int64)
    place[queries.order] = np.arange(len(place))
    if not queries.is_grouped:
        data.update({name: _take(values, queries.order) for name, values in data.items() if values is not None})
    target = _target(folder)
    try:
        X = np.lib.format.open_memmap(target, "w+", files.dtype, (len(place), len(files.features)))
        first = 0
        for table in files.tables(files.features):
            X[place[first : first + len(table)]] = files.numbers(table, first)
            first += len(table)
        X.flush()
        X = np.load(target, mmap_mode="r")
    except BaseException:
        _remove(target)
        raise
    if folder is None:
        weakref.finalize(X._mmap, _remove, target)  # views of X keep the map, and with it the file
    return Bunch(X=X, **data, feature_names=files.features)


def iter_ranking(
    path,
    *,
    max_rows=65_536,
    y="y",
    qid="qid",
    features=None,
    sensitive_features=None,
    query_weight=None,
    dtype=None,
) -> Iterator[Bunch]:
    """Read Parquet files in chunks of whole queries, for `partial_fit` and `predict`.

    Rows of a query must lie together; a query may go on in the next file. Memory holds the query ids and one chunk.

    Parameters
    ----------
    path, y, qid, features, sensitive_features, query_weight, dtype
        As of `read_ranking`.
    max_rows : int
        Rows of a chunk at most; a query of more rows is a chunk by itself.

    Yields
    ------
    chunk : Bunch
        ``X``, ``y``, ``qid``, ``sensitive_features``, ``query_weight`` and ``feature_names``, as of `read_ranking`, in memory.

    Raises
    ------
    ValueError
        As `read_ranking`, or if a query id comes back after rows of other queries.

    Examples
    --------
    In short::

        for chunk in iter_ranking(folder):
            ranker.partial_fit(chunk.X, chunk.y, qid=chunk.qid)
    """
    import pyarrow as pa

    files = _Files.of(path, y, qid, features, sensitive_features, query_weight, dtype)
    starts = _starts(as_values(files.read([qid]).column(0).to_numpy()), qid)
    tables, left, first = files.tables(files.schema.names), files.schema.empty_table(), 0
    while first < starts[-1]:
        last = max(np.searchsorted(starts, first + max_rows, side="right") - 1, np.searchsorted(starts, first) + 1)
        n_rows = int(starts[last]) - first
        while len(left) < n_rows:
            left = pa.concat_tables([left, next(tables)])
        rows, left = left.slice(0, n_rows), left.slice(n_rows)
        yield Bunch(X=files.numbers(rows, first), **files.others(rows), feature_names=files.features)
        first += n_rows


@dataclass(frozen=True)
class _Files:
    """Parquet files whose columns have been checked."""

    paths: list[Path]
    y: str
    qid: str
    features: list[str]
    sensitive_features: Any
    query_weight: str | None
    dtype: np.dtype
    #: The type to which each column is brought.
    schema: Any

    @classmethod
    def of(cls, path, y, qid, features, sensitive_features, query_weight, dtype) -> _Files:
        paths = _paths(path)
        opened = {path: _opened(path) for path in paths}
        if not any(file.metadata.num_rows for file in opened.values()):
            raise ValueError(f"There are no rows in {path}: give files with rows.")
        schemas = {path: file.schema_arrow for path, file in opened.items()}
        others = [y, qid, *_listed(sensitive_features), *_listed(query_weight)]
        if features is None:
            features = _features_left(schemas, others)
        elif isinstance(features, str) or not len(features) or len({y, qid, *features}) < 2 + len(features):
            raise ValueError(
                f"features={features!r}: give a list of columns, each once, without those of the relevances ({y!r}) and of the "
                f"query ids ({qid!r})."
            )
        kinds = []
        for path, schema in schemas.items():
            lacking = [name for name in [*features, *others] if schema.get_field_index(name) < 0]
            if lacking:
                raise ValueError(
                    f"{path} has no column {lacking[0]!r} (or several): its columns are {_some(schema.names)}. Name columns by "
                    "y=, qid=, features=, sensitive_features= and query_weight=; the name of a folder makes no column."
                )
            kinds += [_number_kind(schema.field(name).type, name, path) for name in features]
        dtype = np.result_type(np.float32, *set(kinds)) if dtype is None else np.dtype(dtype)
        schema = _schema(schemas, others, dict.fromkeys(features, dtype))
        return cls(paths, y, qid, list(features), sensitive_features, query_weight, dtype, schema)

    @property
    def other_columns(self) -> list[str]:
        return list(dict.fromkeys([self.y, self.qid, *_listed(self.sensitive_features), *_listed(self.query_weight)]))

    def tables(self, columns) -> Iterator[Any]:
        """All rows of some columns, block by block."""
        import pyarrow as pa

        schema = pa.schema([self.schema.field(name) for name in columns])
        for path in self.paths:
            for batch in _opened(path).iter_batches(_ROWS, columns=columns):
                yield pa.Table.from_batches([batch]).select(columns).cast(schema, safe=False)

    def read(self, columns):
        import pyarrow as pa

        return pa.concat_tables([self.schema.empty_table().select(columns), *self.tables(columns)])

    def others(self, table) -> Bunch:
        """All but the features, under the names of arguments of `fit`."""
        groups, weight = self.sensitive_features, self.query_weight
        frame = table.select(_listed(groups)).to_pandas()
        return Bunch(
            y=check_relevance(table.column(self.y).to_numpy(), name=self.y),
            qid=as_values(table.column(self.qid).to_numpy()),
            sensitive_features=None if groups is None else frame[groups],
            query_weight=None if weight is None else table.column(weight).to_numpy(),
        )

    def numbers(self, table, first: int) -> np.ndarray:
        """Features of a table whose first row is row `first` of all."""
        X = np.column_stack([table.column(name).to_numpy() for name in self.features])
        if not np.isfinite(X).all():
            row, j = np.argwhere(~np.isfinite(X))[0]
            raise ValueError(
                f"The column {self.features[j]!r} is {X[row, j]} (as {self.dtype}) in row {first + row}, counted from 0 over all "
                "files: fill missing and infinite values, or leave out the rows or the column."
            )
        return X


def _listed(names) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def _paths(path) -> list[Path]:
    """The files of a path, a folder or a list of paths."""
    if isinstance(path, (list, tuple)) and len(path):
        return [file for part in path for file in _paths(part)]
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path={path!r}: give the path of a Parquet file, or of a folder of them, or a list of paths.")
    path = Path(path).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {path}: give a Parquet file, or a folder of them.")
    if not path.is_dir():
        return [path]
    inside = [file for file in path.rglob("*") if file.suffix.lower() in _ENDINGS and file.is_file()]
    files = [file for file in inside if not any(part[0] in "_." for part in file.relative_to(path).parts)]
    if not files:
        raise FileNotFoundError(f"The folder {path} has no file that ends in .parquet: give another, or the file.")
    return sorted(files, key=lambda file: [int(s) if s.isdigit() else s for s in re.split(r"(\d+)", str(file))])


def _opened(path):
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:  # pragma: no cover
        raise ImportError('Parquet files need pyarrow: pip install "skfairrank[parquet]".') from error
    try:
        return pq.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} is no whole Parquet file ({error}) Write it anew, or leave it out.") from error


def _features_left(schemas, others) -> list[str]:
    """All columns without another part, which have to be the same in all files."""
    left = {}
    for path, schema in schemas.items():
        index = dict(schema.pandas_metadata or {}).get("index_columns", ())  # of the DataFrame that was written
        left[path] = [name for name in schema.names if name not in others and name not in index]
    first, *rest = left
    for path in rest:
        differ = set(left[path]) ^ set(left[first])
        if differ:
            raise ValueError(f"{first} and {path} differ in the columns {_some(sorted(differ))}: choose by features=.")
    folders = [set(path.parent.parts) for path in schemas]
    varying = sorted({part.partition("=")[0] for part in set().union(*folders).difference(*folders[:1]) if "=" in part})
    if varying:
        warn_caller(
            f"The names of folders tell {_some(varying)}, which are in no file, and so no features. Write features into the "
            "files; features= says which, and ends this warning."
        )
    if not left[first]:
        raise ValueError(f"{first} has no column left for features: its columns are {_some(schemas[first].names)}.")
    return left[first]


def _number_kind(kind, name, path) -> np.dtype:
    """NumPy's dtype of a column of numbers."""
    import pyarrow.types as types

    kind = _plain(kind)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype())
    raise ValueError(
        f"The column {name!r} of {path} is of the type {kind}, which is no number: leave it out by features=, or encode it "
        "before you write the file (dates as days, texts as a column of 0 and 1 for each value). A sensitive column is named by "
        "sensitive_features=."
    )


def _plain(kind):
    """The type of a column without its dictionary; decimals are floats."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.float64() if pa.types.is_decimal(kind) else kind


def _schema(schemas, others, features):
    """The types of all columns that are read: of the others one that suits all files."""
    import pyarrow as pa

    plain = [
        pa.schema([(n, _plain(schema.field(n).type)) for n in dict.fromkeys(others)]) for schema in schemas.values()
    ]
    try:
        found = pa.unify_schemas(plain, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(f"A column has several types: write all files with one. ({error})") from error
    numbers = {name: pa.from_numpy_dtype(dtype) for name, dtype in features.items()}
    return pa.schema(numbers | {field.name: field.type for field in found if field.name not in numbers})


def _take(values, order):
    return values.iloc[order].reset_index(drop=True) if hasattr(values, "iloc") else values[order]


def _target(folder) -> Path:
    """Where X is written."""
    if folder is None:
        handle, name = tempfile.mkstemp(prefix="skfairrank-", suffix=".npy")
        os.close(handle)
        return Path(name)
    target = Path(folder) / "X.npy"
    if target.exists():
        raise FileExistsError(f'{target} exists: open it by np.load(path, mmap_mode="r"), or remove it.')
    return target


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _starts(ids, name) -> np.ndarray:
    """Where queries begin whose rows lie together, and the number of rows."""
    starts = np.r_[0, np.flatnonzero(ids[1:] != ids[:-1]) + 1, len(ids)]
    queries = Queries.from_qid(ids, len(ids), name=name)
    if len(starts) - 1 > queries.n_queries:
        again = Queries.from_qid(ids[starts[:-1]], len(starts) - 1)
        k = int(np.argmax(again.sizes > 1))
        first, other = starts[again.rows(k)[:2]]
        raise ValueError(
            f"{name} {again.name(k)} begins in row {first} and again in row {other}, counted from 0 over all files: in chunks "
            f"the rows of a query must lie together. Sort the files by {name}, or take read_ranking, which sorts."
        )
    return starts


def _some(names) -> str:
    return ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
