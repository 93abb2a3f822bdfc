"""Sphinx settings. `make docs` builds the pages; with RUN_EXAMPLES=1 it runs the gallery's scripts too."""

import os

import skfairrank

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
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]

# Pages are Markdown that GitHub shows as well: $math$, tables, headings as anchors.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"(^|/)_|results\.py",  # shared code of the scripts
    "plot_gallery": os.environ.get("RUN_EXAMPLES") == "1",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "reset_modules": ("matplotlib",),
}

html_theme = "pydata_sphinx_theme"
html_title = f"skfairrank {release}"
html_show_sourcelink = False
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
