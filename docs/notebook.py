"""Makes a notebook of a page: prose and code in turn, and below the code what the page says that it prints.

    python docs/notebook.py docs/start_here.md start_here.ipynb

docs/conf.py calls `notebook` when it builds the site, so that readers can download *Start here* in both forms.
"""

from __future__ import annotations

import doctest
import json
import re
import sys
from pathlib import Path

FENCE = re.compile(r"^```(python|pycon)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def cells(page: str):
    """(kind, source, output) of each cell; a session is cut behind each statement that prints something."""
    end = 0
    for block in FENCE.finditer(page):
        yield "markdown", page[end : block.start()], ""
        end, source = block.end(), ""
        if block[1] == "python":
            yield "code", block[2], ""
            continue
        for example in doctest.DocTestParser().get_examples(block[2]):
            source += example.source
            if example.want:
                yield "code", source, example.want
                source = ""
        if source:
            yield "code", source, ""
    yield "markdown", page[end:], ""


def notebook(page: str) -> str:
    """The page as the text of a notebook. It lies in a folder of its own, so links to other pages and pictures are left out."""
    written: list[dict] = []
    for kind, source, output in cells(page):
        cell: dict = {"cell_type": kind, "id": f"cell-{len(written)}", "metadata": {}}
        if kind == "code":
            printed = {"output_type": "stream", "name": "stdout", "text": output}
            cell |= {"execution_count": None, "outputs": [printed] if output else []}
        else:
            source = re.sub(
                r"!?\[([^\]]*)\]\((?![a-z]+:)[^)]*\)", lambda link: "" if link[0][0] == "!" else link[1], source
            )
        if source.strip():
            written.append(cell | {"source": source.strip()})
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": python}, "cells": written}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_text(notebook(source.read_text(encoding="utf-8")), encoding="utf-8")
