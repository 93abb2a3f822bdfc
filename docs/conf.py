"""Sphinx settings. `make docs` builds the pages, and runs the gallery's scripts unless RUN_EXAMPLES=0."""

import os
import re
import sys
from pathlib import Path

import skfairrank

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
sys.path[:0] = [str(DOCS), str(EXAMPLES)]  # scripts import what they share
from api_pages import add_headings, members_of_classes  # noqa: E402
from notebook import notebook  # noqa: E402

SCRIPTS = [path.stem for path in EXAMPLES.glob("plot_*.py")]
#: Scripts that are not run, because a reader must download what they need: docs/images/recorded has what they show.
RECORDED = [picture.stem for picture in sorted((DOCS / "images" / "recorded").glob("*.png"))]

project = "skfairrank"
author = "The skfairrank developers"
project_copyright = f"2026, {author}"
release = skfairrank.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",  # the source of every name
    "sphinx-mathjax-offline",  # formulas need no network: MathJax is part of the built pages
    "sphinx_design",  # the cards of the landing page
    "sphinx_gallery.gen_gallery",
]
# gallery.md has the scripts in sections and in order; the page that sphinx-gallery makes has neither.
templates_path = ["_templates"]
default_role = "py:obj"  # `names` in docstrings are links where there is such a name
exclude_patterns = [
    "_build",
    "_templates",
    "auto_examples/index.rst",
    "sg_execution_times.rst",
    "auto_examples/sg_execution_times.rst",
    # What an earlier build made of scripts that are no longer part of the gallery.
    *(f"auto_examples/{page.name}" for page in (DOCS / "auto_examples").glob("*.rst") if page.stem not in SCRIPTS),
]

# Pages are Markdown that GitHub shows as well: $math$, tables, headings as anchors. The landing page has ::: for cards.
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = [f"api/{page.name}" for page in sorted((DOCS / "api").glob("*.md"))]
autosummary_context = {"class_members": members_of_classes()}
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": rf"/(?!({'|'.join(RECORDED)})\.py)plot_",
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*$",  # what scripts share, and what writes pages
    "plot_gallery": os.environ.get("RUN_EXAMPLES") == "1",
    "parallel": 2,
    "thumbnail_size": (480, 280),
    "default_thumb_file": str(DOCS / "images" / "twins.png"),  # of a script that was not run
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib",),
}

html_theme = "pydata_sphinx_theme"
html_title = "skfairrank"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_js_files = ["custom.js"]
html_show_sourcelink = False
html_use_index = False  # the reference lists every name, and the search finds it
html_sidebars = {"index": [], "start_here": [], "changelog": []}  # pages without a section of their own
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,  # all sections stand in the bar
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"index": [], "changelog": [], "**": ["page-toc"]},
    "show_prev_next": False,
}


def setup(app):
    app.connect("autodoc-process-docstring", add_headings, priority=900)  # numpydoc comes first
    app.connect("source-read", end_examples_where_they_end)
    app.connect("source-read", leave_out_that_it_compiled)
    app.connect("source-read", offer_notebook)
    app.connect("build-finished", write_notebook)


def end_examples_where_they_end(app, name, source):
    """Doctest needs an empty line after the last output of a block; no page shows it."""
    source[0] = re.sub(r"\n\n```$", "\n```", source[0], flags=re.MULTILINE)


def leave_out_that_it_compiled(app, name, source):
    """The first script that is run may say that kernels are compiled, on the machine that builds the pages."""
    if name.startswith("auto_examples/"):
        text = re.sub(r"^ +skfairrank compiles the kernels.*\n", "", source[0], flags=re.MULTILINE)
        empty = r"^\.\. rst-class:: sphx-glr-script-out\n\n \.\. code-block:: none\s*\n(?=\S)"
        source[0] = re.sub(empty, "", text, flags=re.MULTILINE)


def offer_notebook(app, name, source):
    if name == "start_here":
        link = '<a href="start_here.ipynb" download>This page as a notebook.</a>'
        source[0] = source[0].replace("\n\n", f"\n\n{link}\n\n", 1)


def write_notebook(app, exception):
    if exception is None and app.builder.format == "html":
        page = (DOCS / "start_here.md").read_text(encoding="utf-8")
        (Path(app.outdir) / "start_here.ipynb").write_text(notebook(page), encoding="utf-8")
