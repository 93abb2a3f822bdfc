"""The pages "How to ...": their examples run as they stand, and print what they should."""

import re
import runpy

import pytest
from _data import ROOT

PAGES = sorted((ROOT / "docs" / "howto").glob("*.md"))
#: What the last line of each page's examples prints.
PRINTS = {
    "add_a_score": "(4,) True",
    "add_a_utility": "True",
    "add_an_adversary": "True",
    "add_a_kernel": "[2.0, 0.0]",
    "hypotheticals": "True",
}


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_example_of_a_page_runs(page, capsys, tmp_path, monkeypatch):
    assert blocks(page), "a page without an example"
    monkeypatch.chdir(tmp_path)
    script = tmp_path / f"{page.stem}.py"
    script.write_text("\n\n".join(blocks(page)), encoding="utf-8")
    runpy.run_path(str(script), run_name=page.stem)
    printed = capsys.readouterr().out.strip().splitlines()
    assert "False" not in printed
    if page.stem in PRINTS:
        assert printed[-1] == PRINTS[page.stem]
