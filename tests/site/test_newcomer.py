"""A newcomer reads README and the pages of docs/, and runs each page's blocks, in order, in a fresh folder.

The folder has what a user has: an installed package, no data, and the tables that the page tells to take. A block is written as a
session (```pycon, which shows what is printed) or as a script (```python); blocks of one page share their names. The pages of
docs/howto, which are scripts alone, run in test_howto.py.
"""

import doctest
import re
import shutil
from typing import NamedTuple

import pytest
import sklearn
from _data import ROOT
from _pytest.doctest import _get_checker  # compares numbers by the digits that a page shows

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if path.parent.name not in ("_build", "generated", "auto_examples")
}
#: Blocks that cannot run are marked by a line before them, <!-- not run: the reason -->. No others may be.
NOT_RUN = {
    "docs/trees.md": ["it reads german.data, which is not part of the package"],
}
FENCE = re.compile(r"^(?:<!-- not run: (?P<mark>.+?) -->\n\n?)?```(?P<language>[^\n]*)\n(?P<code>.*?)^```", re.M | re.S)
#: What else stands in fences: output, bibliographies, commands (looked at below), directives of Sphinx.
OTHER_LANGUAGES = re.compile(r"text|bibtex|bash|sh|console|\{.*\}")


class Block(NamedTuple):
    """A fenced block of a page."""

    line: int
    language: str
    code: str
    mark: str | None


def blocks(text):
    for found in FENCE.finditer(text):
        line = text[: found.start("code")].count("\n")
        yield Block(line, found["language"].strip(), found["code"], found["mark"])


def runnable(text):
    return [block for block in blocks(text) if block.language in ("pycon", "python") and block.mark is None]


def play(page, text, flags):
    """Run a page's blocks one after the other; AssertionError with what was printed where it is not what the page shows."""
    names, runner = {"__name__": "__main__"}, doctest.DocTestRunner(checker=_get_checker(), optionflags=flags)
    for block in runnable(text):
        if block.language == "python":
            exec(compile("\n" * block.line + block.code, page, "exec"), names)
            continue
        session, said = doctest.DocTestParser().get_doctest(block.code, names, page, page, block.line), []
        session.globs = names  # a DocTest copies what it is given
        runner.run(session, out=said.append, clear_globs=False)
        if said:
            raise AssertionError("".join(said))


@pytest.fixture
def newcomer(tmp_path, monkeypatch, no_data, request):
    """Plays a page in a folder of its own, and leaves scikit-learn and matplotlib as they were."""
    import matplotlib.pyplot as plt

    flags = [doctest.OPTIONFLAGS_BY_NAME[name] for name in request.config.getini("doctest_optionflags")]

    def plays(page, text):
        for table in re.findall(r"\]\((data/[^)]+)\)", text):
            shutil.copy(ROOT / "docs" / table, tmp_path)
        play(page, text, sum(flags))

    monkeypatch.chdir(tmp_path)
    with sklearn.config_context():
        yield plays
    plt.close("all")


# What pages print is compared with the newest dependencies alone, as all doctests are.
@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page, text in PAGES.items() if runnable(text) and not page.startswith("docs/howto/")]
)
def test_every_block_of_a_page_runs_in_a_fresh_folder(page, newcomer):
    newcomer(page, PAGES[page])


def test_a_block_that_prints_something_else_is_noticed(newcomer):
    """In the second block, which knows the first one's names. Numbers are compared by the digits that are shown."""
    page = "```python\nx = 2 / 3\n```\n\n```pycon\n>>> x\n{}\n\n```\n"
    newcomer("page", page.format("0.667"))
    with pytest.raises(AssertionError, match=r"(?s)line 6.*Expected:\s+0\.669\s+Got:\s+0\.6666"):
        newcomer("page", page.format("0.669"))
    with pytest.raises(ZeroDivisionError):
        newcomer("page", "```python\n1 / 0\n```\n")


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_run_or_marked(page):
    assert not re.search(r"^[ \t]+```", PAGES[page], re.MULTILINE), f"{page}: an indented block would be overlooked"
    for block in blocks(PAGES[page]):
        is_code = block.language in ("pycon", "python")
        assert is_code or OTHER_LANGUAGES.fullmatch(block.language), f"{page}: a block of {block.language!r}"
        assert is_code or block.mark is None, f"{page}: nobody runs a block of {block.language!r}, marked or not"
        assert (block.language == "pycon") == block.code.startswith(">>> "), f"{page}, line {block.line + 1}"
    assert [block.mark for block in blocks(PAGES[page]) if block.mark] == NOT_RUN.get(page, [])
