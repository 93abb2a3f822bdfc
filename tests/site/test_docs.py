"""The pages hang together: every link leads somewhere, every page and every script is listed once, pictures are small."""

import json
import re
import runpy

import pytest
from _data import ROOT

DOCS = ROOT / "docs"
#: Written by hand; what Sphinx makes lies in folders of its own.
FOLDERS = (ROOT, DOCS, *(DOCS / name for name in ("api", "howto", "metrics", "results")))
PAGES = [page for folder in FOLDERS for page in sorted(folder.glob("*.md"))]
SCRIPTS = sorted(path.stem for path in (ROOT / "examples").glob("plot_*.py"))


def prose(page):
    """A page without its blocks of code, and without code within lines."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def links(page):
    """(file, anchor) of every link and picture that leads to a file of the repository."""
    for target in re.findall(r"\]\(([^)\s]*)\)", prose(page)):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


def anchors(page):
    """What GitHub and MyST make of headings: small letters, hyphens for spaces, nothing but letters, digits and these."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def entries(page):
    """The pages that the toctrees of a page list."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in filter(None, block.splitlines()):
            if not line.startswith(":"):
                yield re.sub(r".*<(.*)>$", r"\1", line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings_that_are_there(page):
    for path, anchor in links(page):
        assert path.exists(), f"{page.name} links to {path}"
        if anchor:
            assert anchor in anchors(path), f"{page.name} links to {path.name}#{anchor}"


def test_every_page_is_listed_once_and_there():
    listed = [entry for page in PAGES if page.is_relative_to(DOCS) for entry in entries(page)]
    scripts = [f"auto_examples/{name}" for name in SCRIPTS]
    pages = [page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES if page.is_relative_to(DOCS)]
    assert sorted(listed) == sorted(scripts + [name for name in pages if name != "index"])


def test_a_notebook_has_the_prose_the_code_and_what_it_prints():
    notebook = runpy.run_path(str(DOCS / "notebook.py"))["notebook"]
    page = "# A\n\n[B](b.md)\n\n```pycon\n>>> x = 1\n>>> x + 1\n2\n>>> y = 3\n\n```\n\n![p](p.png)\n\n```python\nz = 4\n```\n"
    cells = json.loads(notebook(page))["cells"]
    assert [cell["source"] for cell in cells] == ["# A\n\nB", "x = 1\nx + 1", "y = 3", "z = 4"]
    assert [cell.get("outputs") for cell in cells][:2] == [
        None,
        [{"output_type": "stream", "name": "stdout", "text": "2\n"}],
    ]


def test_what_is_recorded_belongs_to_a_script_that_shows_it():
    for file in (DOCS / "images" / "recorded").iterdir():
        text = (ROOT / "examples" / f"{file.stem}.py").read_text(encoding="utf-8")
        assert f":: /images/recorded/{file.name}\n" in text and file.stat().st_size < 60_000
        assert f"\n# sphinx_gallery_thumbnail_path = 'images/recorded/{file.stem}.png'\n" in text
