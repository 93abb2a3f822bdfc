# Every target works alone in a fresh clone with python3 (3.11 or newer, with venv) and make; each makes the virtual
# environment it needs. Another interpreter: make test PYTHON=python3.12
PYTHON ?= python3
RUN_EXAMPLES ?= 1
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# A stamp is named for its interpreter, so another PYTHON makes the environment anew.
DEV := .venv/.installed-$(notdir $(PYTHON))
DEMO := .venv-demo/.installed-$(notdir $(PYTHON))
DOCS := .venv-docs/.installed-$(notdir $(PYTHON))
DIST := .venv-dist/.installed-$(notdir $(PYTHON))
OLDEST := .venv-oldest/.installed-$(notdir $(PYTHON))

# Tests draw without a screen, on every core there is, one thread each. Compiled kernels are cached beside the environment that
# compiled them, and stay there from one run to the next.
TEST_ENV = MPLBACKEND=Agg PYTHONHASHSEED=0 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_CACHE_DIR=$(CURDIR)/$(1)/numba-cache
PYTEST = $(call TEST_ENV,$(1)) $(1)/bin/python -m pytest --numprocesses auto --dist worksteal

.PHONY: help setup demo test lint format coverage docs test-once test-oldest dist bench clean
# A recipe says in one line what happens; commands are not echoed (`make -n test` shows them), errors are.
.SILENT:

help: ## show the targets
	sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup: $(DEV) ## the development environment, .venv
	echo "The development environment .venv is ready."

demo: $(DEMO) ## the main job: train the paper's rankers, print the table, draw the picture
	.venv-demo/bin/python -m examples.paper.demo

test: lint ## ruff, mypy, then pytest with doctests; newest dependencies
	echo "Running the tests and doctests (some minutes) ..."
	$(call PYTEST,.venv) $(PYTEST_ARGS)

lint: $(DEV) ## ruff and mypy only
	echo "Checking style and types (ruff, mypy) ..."
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/ruff format --check --line-length 88 examples/plot_*.py
	.venv/bin/ruff format --check --line-length 84 README.md docs/*.md docs/*/*.md
	.venv/bin/mypy

format: $(DEV) ## let ruff mend what it can
	echo "Mending style (ruff) ..."
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	.venv/bin/ruff format --line-length 88 examples/plot_*.py
	.venv/bin/ruff format --line-length 84 README.md docs/*.md docs/*/*.md

coverage: $(DEV) ## the tests under coverage
	echo "Running the tests under coverage ..."
	$(call TEST_ENV,.venv) .venv/bin/coverage run -m pytest $(PYTEST_ARGS)
	.venv/bin/coverage report

test-oldest: $(OLDEST) ## pytest with the oldest supported dependencies, without doctests and what no dependency decides
	echo "Running the tests with the oldest supported dependencies ..."
	$(call PYTEST,.venv-oldest) -m "not slow and not once" tests $(PYTEST_ARGS)

# The gallery's scripts run, and their figures appear; RUN_EXAMPLES=0 builds the pages in half a minute.
docs: $(DOCS) $(DEV) ## the documentation in docs/_build/html; every block of its pages and every example is run
	echo "Running what the pages and the examples say ..."
	$(call PYTEST,.venv) tests/site $(PYTEST_ARGS)
	echo "Building the documentation in docs/_build/html ..."
	rm -rf docs/_build/html
	MPLBACKEND=Agg RUN_EXAMPLES=$(RUN_EXAMPLES) .venv-docs/bin/python -m sphinx -W --keep-going -b html docs docs/_build/html
	echo "Measuring every page in a browser ..."
	.venv-docs/bin/python docs/check_width.py docs/_build/html

dist: $(DIST) ## the wheel and the source distribution in dist/, tried in an empty environment
	echo "Building the source distribution, and the wheel from it, in dist ..."
	rm -rf dist
	.venv-dist/bin/python -m build --outdir dist . > .venv-dist/build.log 2>&1 || { cat .venv-dist/build.log >&2; exit 1; }
	.venv-dist/bin/python .ci/check_dist.py dist

bench: $(DEV) ## the benchmarks (BENCH=--quick for less)
	echo "Running the benchmarks ..."
	.venv/bin/python benchmarks/run.py $(BENCH)

clean: ## remove environments, caches and built things
	echo "Removing environments, caches and built things ..."
	rm -rf .venv .venv-demo .venv-docs .venv-oldest .venv-dist build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis \
	  .coverage docs/_build docs/generated docs/auto_examples
	find skfairrank tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

# $(call install,ENVIRONMENT): a new environment, never a changed one, with what the target names in NEEDS.
define install
$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("skfairrank needs Python 3.11 or newer, this is " + sys.version)'
echo "Installing what this needs into $(1) ..."
rm -rf $(1)
$(PYTHON) -m venv $(1)
$(1)/bin/python -m pip install --quiet --quiet $(NEEDS)
touch $@
endef

$(DEV): NEEDS = --editable '.[test,lint]'
$(DEV): pyproject.toml
	$(call install,.venv)

$(DEMO): NEEDS = --editable '.[plots]'
$(DEMO): pyproject.toml
	$(call install,.venv-demo)

$(DOCS): NEEDS = --editable '.[docs]'
$(DOCS): pyproject.toml
	$(call install,.venv-docs)

$(DIST): NEEDS = build==1.3.0
$(DIST):
	$(call install,.venv-dist)

$(OLDEST): NEEDS = --requirement .ci/oldest-requirements.txt --editable '.[test]'
$(OLDEST): pyproject.toml .ci/oldest-requirements.txt
	$(call install,.venv-oldest)
