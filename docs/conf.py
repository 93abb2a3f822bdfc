"""Sphinx settings. `make docs` builds the pages; with RUN_EXAMPLES=1 it runs the gallery's scripts too."""

import os

import skfairrank
from skfairrank.experiments import data_folder

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

# Scripts are run in their own folder, from which the default folder of data files is not seen.
os.environ["SKFAIRRANK_DATA"] = str(data_folder().resolve())
# Figure 4 needs files that nothing can fetch: where they are not at hand its page shows the script alone.
has_mslr = bool(os.environ.get("SKFAIRRANK_MSLR")) or (data_folder() / "mslr_sample_train.txt.gz").is_file()

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"\.py$" if has_mslr else r"^(?!.*plot_figure4).*\.py$",
    "ignore_pattern": r"(^|/)_|results\.py|which_method\.py",  # shared code of the scripts, and pages
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
