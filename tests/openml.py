"""An OpenML of one data set, "credit-g" in version 1, that answers scikit-learn's requests without a network."""

import gzip
import hashlib
import io
import json
import urllib.request
from contextlib import contextmanager
from urllib.error import URLError
from urllib.response import addinfourl

import pandas as pd

DATA_ID = 31


class OpenML(urllib.request.HTTPSHandler):
    """The answers to requests, from a table.

    Attributes
    ----------
    frame : DataFrame
        What the data set holds; the last column is the target.
    error : Exception or None
        What a request fails with.
    asked : list of str
        The addresses that were asked for.
    """

    def __init__(self, frame):
        super().__init__()
        self.frame, self.error, self.asked = frame, None, []

    def https_open(self, request):
        self.asked.append(request.full_url)
        if self.error is not None:
            raise self.error
        content = io.BytesIO(gzip.compress(self._answer(request.full_url)))
        response = addinfourl(content, self._HEADERS, request.full_url, 200)
        response.msg = "OK"
        return response

    _HEADERS = {"Content-Encoding": "gzip"}

    def _answer(self, url) -> bytes:
        if "/download/" in url:
            return self._arff()
        described = {"id": str(DATA_ID), "name": "credit-g", "version": "1", "status": "active", "format": "ARFF"}
        described["file_id"] = described["id"]
        if "/data/list/data_name/credit-g/" in url and url.endswith("/data_version/1"):
            found = {"data": {"dataset": [{"did": DATA_ID, **described, "version": 1}]}}
        elif url.endswith(f"/data/features/{DATA_ID}"):
            found = {"data_features": {"feature": self._features()}}
        elif url.endswith(f"/data/qualities/{DATA_ID}"):
            found = {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": f"{len(self.frame)}.0"}]}}
        elif url.endswith(f"/data/{DATA_ID}"):
            checksum = hashlib.md5(self._arff()).hexdigest()
            address = f"https://www.openml.org/data/v1/download/{DATA_ID}/dataset_31_credit-g.arff"
            found = {"data_set_description": {**described, "description": "", "url": address, "md5_checksum": checksum}}
        else:
            raise URLError(f"no answer to {url}")
        return json.dumps(found).encode()

    def _features(self):
        last = self.frame.columns[-1]
        return [
            {
                "index": str(index),
                "name": name,
                "data_type": "numeric" if pd.api.types.is_numeric_dtype(self.frame[name]) else "nominal",
                "is_target": "true" if name == last else "false",
                "is_ignore": "false",
                "is_row_identifier": "false",
                "number_of_missing_values": "0",
            }
            for index, name in enumerate(self.frame)
        ]

    def _arff(self) -> bytes:
        kinds = {
            name: "numeric"
            if pd.api.types.is_numeric_dtype(self.frame[name])
            else "{" + ",".join(f"'{value}'" for value in self.frame[name].astype(str).unique()) + "}"
            for name in self.frame
        }
        rows = [",".join(v if isinstance(v, str) else f"{v:g}" for v in row) for row in self._quoted().to_numpy()]
        head = ["@relation credit-g", *(f"@attribute '{name}' {kind}" for name, kind in kinds.items()), "@data"]
        return "\n".join([*head, *rows, ""]).encode()

    def _quoted(self):
        """As OpenML writes them: with quotes where a category has blanks or signs."""
        texts = [name for name in self.frame if not pd.api.types.is_numeric_dtype(self.frame[name])]
        quoted = {name: [v if v.isalnum() else f"'{v}'" for v in self.frame[name].astype(str)] for name in texts}
        return self.frame.assign(**{name: pd.Series(values, dtype=object) for name, values in quoted.items()})


@contextmanager
def served(openml):
    """Within the context, requests to https go to this one."""
    urllib.request.install_opener(urllib.request.build_opener(openml))
    try:
        yield openml
    finally:
        urllib.request.install_opener(None)  # the next request makes the usual one
