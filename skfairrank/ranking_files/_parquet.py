"""Parquet files as a source of rows, by pyarrow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from skfairrank._checks import as_values
from skfairrank.ranking_files._query_table import read_ids, read_table
from skfairrank.ranking_files._source import (
    Block,
    RankingChunk,
    RankingSource,
    check_block,
    checked_relevance,
    stamp_of,
)

__all__ = ["ParquetRanking"]

# Rows that are decoded at once, and those of them that are turned from columns into rows at once, which a cache can hold.
_ROWS, _TURNED = 1 << 15, 1 << 11
# Bytes that are read at once of each column of a row group. Without a bound pyarrow reads them all.
_BUFFER = 1 << 18


class ParquetRanking(RankingSource):
    """A Parquet file, or a folder of them, for data that memory cannot hold.

    ``ranker.fit(ParquetRanking(path))`` trains any ranker of this package that has ``solver="adam"``, and reaches what ``fit`` on
    the same rows in memory reaches, bit for bit. ``ranker.predict(source)``, ``ranker.rank(source)`` and ``ranker.score(source)``
    read the file in chunks, as `evaluate_in_chunks` does. Needs pyarrow: ``pip install "skfairrank[parquet]"``.

    Rows of a query must lie one behind the other. A query may go from one row group to the next, or from one file to the next.

    Parameters
    ----------
    path : path-like, or list of path-like
        A file; a folder, whose files that end in ``.parquet``, ``.parq`` or ``.pq`` are read in the order of their names, numbers
        by value ("part.2" before "part.10"), folders within it too, and names that begin with "_" or "." left out; or a list of
        files in order. What the name of a folder says, such as "year=2024", is no column.
    target : str, default="target"
        Column of the relevances, >= 0.
    qid : str, default="qid"
        Column of the query ids: ints, strings, dates, plain or dictionary-encoded.
    features : list of str, optional
        Columns of the features. Default: all but those that have another part here.
    sensitive_features : str or list of str, optional
        Columns of the sensitive attributes. They are no features unless `features` names them.
    query_weight : str, optional
        Column of the weights of the queries, equal within a query.
    spool_dir : path-like, optional
        Folder for the rows as training reads them. The first `fit` writes them there, a float32 (or float64) for each feature and
        8 bytes for the relevance: 2.1 GB for ten million rows of 50 float32 features. They are removed by `close`, with this
        object, or where Python ends. Default: the system's folder for temporary files; where that is kept in memory, as ``/tmp``
        is on some systems, name a folder on a disk.

    Attributes
    ----------
    n_rows, n_queries : int
        Read from the file when they are first asked for, as `feature_names` is.
    feature_names : ndarray of str, shape (n_features,)

    Notes
    -----
    The query ids are read first, then all rows, which are checked as `fit` checks rows in memory: missing and infinite values,
    negative relevances and columns that are no numbers raise an error that names the column. So does a query id that comes back
    in another place. Features are float32 where all columns are float32 or smaller (float16 apart), else float64.

    In memory are some 40 bytes for each query while training runs, blocks of rows (up to 65,536, and any query whole), and a
    sample of rows for a fair metric (`sample`). Ids that do not ascend are sorted in memory, which takes some 100 bytes for each
    query.

    A file that changes is read anew by the next call; one that changes while it is read raises an error.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from skfairrank import PlackettLuceRanker
    >>> from skfairrank.datasets import make_biased_ranking
    >>> from skfairrank.ranking_files import ParquetRanking
    >>> task = make_biased_ranking(n_queries=50, random_state=0)
    >>> table = pd.DataFrame(task.data, columns=["merit", "proxy"]).assign(target=task.target, qid=task.qid)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.to_parquet(Path(folder) / "rows.parquet")
    ...     source = ParquetRanking(Path(folder) / "rows.parquet")
    ...     ranker = PlackettLuceRanker(random_state=0).fit(source)
    ...     source.close()
    >>> in_memory = PlackettLuceRanker(random_state=0).fit(table[["merit", "proxy"]], table["target"], qid=table["qid"])
    >>> bool((ranker.coef_ == in_memory.coef_).all())
    True
    """

    def __init__(
        self,
        path,
        *,
        target="target",
        qid="qid",
        features=None,
        sensitive_features=None,
        query_weight=None,
        spool_dir=None,
    ):
        self.spool_dir = spool_dir
        self.path, self.target, self.qid, self.query_weight = path, target, qid, query_weight
        self.features, self.sensitive_features = features, sensitive_features

    def __repr__(self):
        return f"ParquetRanking({str(self.path)!r})"

    @property
    def feature_names(self):
        known = self._fresh()
        if "names" not in known:
            known["names"] = self._names(_opened(self._files()[0]).schema_arrow)
        return known["names"]

    @property
    def n_features(self):
        return len(self.feature_names)

    @property
    def _sensitive_columns(self) -> list[str]:
        given = self.sensitive_features
        return [] if given is None else [given] if isinstance(given, str) else list(given)

    def _read_chunks(self, table, parts):
        dtype, columns = self._dtype(), self._columns()
        for first, batches in _cut(self._blocks(columns), parts, table.starts):
            row = int(table.starts[first])
            places = [row, *(row + np.cumsum([len(batch) for batch in batches]))]
            X = np.concatenate([self._features_of(batch, dtype) for batch in batches])
            check_block(self, X, row)
            weight = self.query_weight
            yield RankingChunk(
                self._named(X),
                np.concatenate([self._relevances(batch, at) for batch, at in zip(batches, places)]),
                np.concatenate([_values(batch, self.qid) for batch in batches]),
                self._joined(batches),
                None if weight is None else np.concatenate([_numbers(batch, weight) for batch in batches]),
                first,
            )

    def _columns(self) -> list[str]:
        weight = [] if self.query_weight is None else [self.query_weight]
        return list(dict.fromkeys([*self._known["names"], self.target, self.qid, *self._sensitive_columns, *weight]))

    def _files(self) -> list[Path]:
        return _files_of(self.path)

    def _stamp(self):
        return [stamp_of(path) for path in self._files()]

    def _names(self, schema) -> np.ndarray:
        if self.features is not None:
            if isinstance(self.features, str) or not len(self.features):
                raise ValueError(f"features={self.features!r}: give a list of the names of columns, at least one.")
            twice = sorted({name for name in self.features if list(self.features).count(name) > 1})
            if twice:
                raise ValueError(f"features has {twice} more than once: name each column once.")
            taken = {self.target, self.qid} & set(self.features)
            if taken:
                raise ValueError(
                    f"features has {sorted(taken)}, which are the relevances or the query ids (target={self.target!r}, "
                    f"qid={self.qid!r}): a ranker that sees them learns nothing else. Leave them out."
                )
            return np.array(list(self.features), dtype=object)
        others = {self.target, self.qid, self.query_weight, *self._sensitive_columns, *_index_columns(schema)}
        names = [name for name in schema.names if name not in others]
        if not names:
            raise ValueError(f"{self!r} has no column left for features: its columns are {schema.names}.")
        return np.array(names, dtype=object)

    def _dtype(self):
        """The dtype of the rows; raises where a column is missing in a file, or is no number."""
        names, known = self.feature_names, self._known
        if "dtype" not in known:
            kinds = [np.dtype(np.float16)]
            sensitive: dict[str, dict] = {name: {} for name in self._sensitive_columns}
            for path in self._files():
                schema = _opened(path).schema_arrow
                for name in self._columns():
                    if schema.get_field_index(name) < 0:
                        raise ValueError(
                            f"{path} has no column {name!r} (or several): its columns are {_some(schema.names)}. Name the "
                            "columns by target=, qid=, features=, sensitive_features= and query_weight=."
                            + _remedy_of_folder(name, path)
                        )
                    _refuse_lists(schema.field(name).type, name, path)
                kinds += [_kind_of(schema.field(name).type, name, path) for name in names]
                for name, found in sensitive.items():
                    found.setdefault(schema.field(name).type, path)
            known["shared"] = {name: _shared_kind(found, name) for name, found in sensitive.items()}
            result = np.result_type(*set(kinds))
            known["dtype"] = np.dtype(np.float32 if result == np.float32 else np.float64)
        return known["dtype"]

    def _blocks(self, columns: Sequence[str]) -> Iterator[Any]:
        """All rows of these columns, as record batches, file after file."""
        for path in self._files():
            file = _opened(path)
            yield from file.iter_batches(_ROWS, columns=list(columns))

    def _read_queries(self):
        self._dtype()
        return read_table(self._blocks_of_ids, self.qid)

    def _read_ids(self):
        return read_ids(self._blocks_of_ids, self.qid)

    def _blocks_of_ids(self):
        return (_values(batch, self.qid) for batch in self._blocks([self.qid]))

    def _read_highest(self):
        return max(float(_numbers(batch, self.target).max()) for batch in self._blocks([self.target]) if len(batch))

    def _blocks_of_rows(self):
        dtype, first = self._dtype(), 0
        for batch in self._blocks(self._columns()):
            if len(batch):
                weight = None if self.query_weight is None else _numbers(batch, self.query_weight)
                self._refuse_missing(batch, first)
                take = partial(_take, batch, self._sensitive_columns)
                yield Block(self._features_of(batch, dtype), self._relevances(batch, first), weight, take)
                first += len(batch)

    def _refuse_missing(self, batch, first):
        for name in self._sensitive_columns:
            missing = self._sensitive(batch, name).is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
            if missing.any():
                raise ValueError(
                    f"sensitive_features (column {name!r} of {self!r}) has missing values, the first in row "
                    f"{first + int(np.argmax(missing))}: drop those rows, or make missing a group of its own."
                )

    def _relevances(self, batch, first):
        return checked_relevance(self, _numbers(batch, self.target), first, f"the column {self.target!r}")

    def _features_of(self, batch, dtype) -> np.ndarray:
        """Features of a record batch, row by row."""
        columns = [_numbers(batch, name) for name in self._known["names"]]
        X = np.empty((len(batch), len(columns)), dtype)
        for at in range(0, len(X), _TURNED):
            rows = slice(at, at + _TURNED)
            for j, column in enumerate(columns):
                X[rows, j] = column[rows]
        return X

    def _joined(self, batches):
        """Sensitive features of record batches, as pandas reads them from a file."""
        columns = self._sensitive_columns
        if not columns:
            return None
        import pyarrow as pa

        parts = [
            pa.RecordBatch.from_arrays([self._sensitive(batch, name) for name in columns], names=columns)
            for batch in batches
        ]
        table = pa.Table.from_batches(parts)
        frame: Any = table.unify_dictionaries().to_pandas(ignore_metadata=True)
        return frame[columns[0]] if isinstance(self.sensitive_features, str) else frame

    def _sensitive(self, batch, name):
        """A sensitive column of a record batch, in the type that it has in all files."""
        column, kind = batch.column(batch.schema.get_field_index(name)), self._known["shared"][name]
        return column if kind is None else _plain(column).cast(kind)

    def _read_groups(self):
        import pyarrow.compute as pc

        columns = self._sensitive_columns
        if len(columns) != 1:
            raise ValueError(
                f"sensitive_features={self.sensitive_features!r}: groups are compared by one column. Combine the columns into "
                "one before the file is written, or choose one."
            )
        distinct: Any = None
        for batch in self._blocks(columns):
            found = pc.unique(_plain(self._sensitive(batch, columns[0])))
            distinct = found if distinct is None else pc.unique(_joined([distinct, found]))
        places = (
            pc.index_in(_plain(self._sensitive(batch, columns[0])), value_set=distinct).to_numpy(zero_copy_only=False)
            for batch in self._blocks(columns)
        )
        return as_values(distinct.to_pandas()), places


# A folder may hold other files, such as a README; Parquet files of every usual ending are read, so that no row is missed.
_ENDINGS = {".parquet", ".parq", ".pq"}


def _files_of(path) -> list[Path]:
    """The files of a path, a folder or a list of paths."""
    if isinstance(path, (list, tuple)) and len(path):
        return [file for part in path for file in _files_of(part)]
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path={path!r}: give the path of a Parquet file, or of a folder of them, or a list of paths.")
    path = Path(path).expanduser()
    if not path.exists():
        raise FileNotFoundError(
            f"There is no file or folder {path}: give the path of a Parquet file, or of a folder of them."
        )
    if not path.is_dir():
        return [path]
    files = [
        file
        for file in path.rglob("*")
        if file.suffix.lower() in _ENDINGS
        and file.is_file()
        and not any(part.startswith(("_", ".")) for part in file.relative_to(path).parts)
    ]
    if not files:
        raise FileNotFoundError(
            f"The folder {path} has no file that ends in .parquet: give another, or the file itself."
        )
    return sorted(files, key=lambda file: _by_number(file.relative_to(path)))


def _by_number(path: Path) -> list:
    """A key that sorts names as people do: "part.2" before "part.10"."""
    return [
        [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)] for name in path.parts
    ]


def _opened(path):
    try:
        import pyarrow.parquet as pq
    except ImportError as error:  # pragma: no cover
        raise ImportError('ParquetRanking needs pyarrow: pip install "skfairrank[parquet]".') from error
    from pyarrow import ArrowInvalid

    try:
        return pq.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
    except ArrowInvalid as error:
        raise ValueError(
            f"{path} is no Parquet file, or only a part of one ({error}) Write it anew, or leave it out of the folder."
        ) from error


def _index_columns(schema) -> list[str]:
    """Columns that are the index of the DataFrame that was written."""
    return [name for name in dict(schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)]


def _kind_of(kind, name, path) -> np.dtype:
    """NumPy's dtype of a column of numbers."""
    import pyarrow.types as types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_decimal(kind):
        return np.dtype(np.float64)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype())
    remedy = (
        "turn dates into numbers, such as days"
        if types.is_temporal(kind)
        else "encode it before the file is written, such as by one column of 0 and 1 for each value"
    )
    raise ValueError(
        f"Column {name!r} of {path} is of the type {kind}, which is no number: leave the column out by features=, or {remedy}. A "
        "column that is sensitive is named by sensitive_features=."
    )


def _refuse_lists(kind, name, path) -> None:
    """Raise ValueError where the rows of a column hold several values each."""
    import pyarrow.types as types

    if types.is_nested(kind):
        raise ValueError(f"Column {name!r} of {path} is of the type {kind}: give columns with one value in each row.")


def _shared_kind(found: dict, name: str):
    """The type to which a column is brought that has several, each of which `found` tells with a file; None where it has one."""
    if len(found) == 1:
        return None
    import pyarrow as pa
    import pyarrow.types as types

    plain = [kind.value_type if types.is_dictionary(kind) else kind for kind in found]
    try:
        schemas = [pa.schema([(name, kind)]) for kind in plain]
        return pa.unify_schemas(schemas, promote_options="permissive").field(name).type
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        named = " and ".join(f"{kind} in {path}" for kind, path in found.items())
        raise ValueError(f"Column {name!r} is of the type {named}: write all files with one type.") from error


def _remedy_of_folder(name: str, path: Path) -> str:
    """What to do where the column is in the name of a folder, as in year=2024/part.0.parquet."""
    if not any(part.startswith(f"{name}=") for part in path.parts):
        return ""
    return f" A folder called {name}=... makes no column: write it into the files."


def _plain(column):
    """A column without dictionary."""
    import pyarrow as pa

    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _column(batch, name):
    return _plain(batch.column(batch.schema.get_field_index(name)))


def _numbers(batch, name) -> np.ndarray:
    """A column of a record batch as numbers; missing values are nan."""
    import pyarrow.types as types

    column = _column(batch, name)
    if types.is_decimal(column.type):
        column = column.cast("float64")
    return column.to_numpy(zero_copy_only=False)


def _values(batch, name) -> np.ndarray:
    """A column of a record batch as ids; missing values are what pandas counts as missing."""
    return as_values(_column(batch, name).to_numpy(zero_copy_only=False))


def _take(batch, columns, rows):
    import pyarrow as pa

    part = pa.RecordBatch.from_arrays(
        [batch.column(batch.schema.get_field_index(name)).take(pa.array(rows)) for name in columns], names=columns
    )
    return part


def _joined(arrays):
    import pyarrow as pa

    return pa.concat_arrays(arrays)


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")


def _cut(batches, parts: Iterable[tuple[int, int]], starts: np.ndarray) -> Iterator[tuple[int, list]]:
    """The first query of each part, and the rows of the part as a list of record batches."""
    batches, left = iter(batches), None
    for first, last in parts:
        inside, missing = [], int(starts[last] - starts[first])
        while missing:
            batch = next(batches, None) if left is None else left
            if batch is None:  # there are fewer rows than there were, of which `chunks` tells
                return
            inside.append(batch.slice(0, missing))
            left = batch.slice(missing) if len(batch) > missing else None
            missing -= len(inside[-1])
        yield first, [part for part in inside if len(part)]
