"""What Sphinx is told of a class: which methods its page shows, where others are shown, and headings among many parameters."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import skfairrank

#: Private bases, and the public class whose page shows what they give.
SHOWN_BY = {"RankingMixin": "PlackettLuceRanker", "ScoreRanker": "PlackettLuceRanker", "Wrapper": "QueryRanker"}

SKLEARN = "`scikit-learn <https://scikit-learn.org/stable/modules/generated/sklearn.base.BaseEstimator.html>`__"

#: Headings by the parameter that they stand before.
HEADINGS = {
    "PlackettLuceRanker": {
        "score_function": "What is learned",
        "solver": "How it is trained",
        "early_stopping": "When training stops",
        "warm_start": "How it runs",
    },
    "SenSTIRBoostingRanker": {
        "estimator": "What is trained",
        "metric": "What is fair, and how much it counts",
        "utility": "What is learned",
        "n_samples": "How it runs",
    },
    "SensitiveSubspaceMetric": {
        "directions": "Directions: given, or learned from attributes",
        "categorical": "How attributes are read",
        "classifier": "How directions are learned",
    },
    "Hypotheticals": {
        "functions": "Which hypotheticals there are",
        "steps": "How far they reach",
        "feature_range": "Which are plausible",
    },
    "Ascent": {
        "epsilon": "How far hypotheticals may go",
        "subspace_step_size, subspace_n_steps": "How the adversary searches",
        "feature_range": "Which hypotheticals are plausible",
    },
    "audit": {
        "rankers": "What is judged, and on which rows",
        "sensitive_features": "By what",
        "reference": "How it is shown",
    },
    "audit_report": {
        "rankers": "What is judged, and on which rows",
        "hypotheticals": "By what",
        "item_names": "How it is shown",
    },
    "exposure_by_group": {
        "rankers": "What is judged, and on which rows",
        "sensitive_features": "Whose exposure",
        "policy": "Which lists",
        "query_weight": "How it is averaged",
    },
    "fairness_certificate": {
        "ranker": "What is judged, and on which rows",
        "hypotheticals": "By which change of the rows",
        "method": "Which bound",
    },
}


def public_names() -> dict:
    """Public classes with their full names, as the pages of the reference list them."""
    names: dict = {}
    for page in sorted((Path(__file__).parent / "api").glob("*.md")):
        for module, listed in re.findall(
            r"currentmodule:: (\S+)\n.*?toctree: \S+\n\n(.*?)```", page.read_text(), re.DOTALL
        ):
            for name in listed.split():
                found = getattr(importlib.import_module(module), name)
                if inspect.isclass(found):
                    names.setdefault(found, f"{module}.{name}")
    return names


def members_of_classes() -> dict[str, tuple[list[str], dict[str, list[str]]]]:
    """What the page of each public class shows, and what it only names, by the place that shows it."""
    public = public_names()
    return {name: members(cls, public) for cls, name in public.items()}


def members(cls: type, public: dict) -> tuple[list[str], dict[str, list[str]]]:
    shown: list[str] = []
    elsewhere: dict[str, list[str]] = {}
    for attribute in dir(cls):
        owner = next(base for base in cls.__mro__ if attribute in vars(base))
        is_request = re.fullmatch(r"set_\w+_request|set_output|get_metadata_routing", attribute)
        if attribute.startswith("_") or is_request or not inspect.getdoc(getattr(cls, attribute)):
            continue
        bases = [base for base in cls.__mro__[1:] if base in public and hasattr(base, attribute)]
        home = getattr(skfairrank, SHOWN_BY.get(owner.__name__, ""), None)
        if owner is not cls and owner.__module__.startswith("sklearn."):
            elsewhere.setdefault(SKLEARN, []).append(f"``{attribute}``")
        elif owner is not cls and (bases or home not in (None, cls)):
            place = public[bases[0] if bases else home]
            link = f":py:obj:`{attribute} <{place}.{attribute}>`"
            elsewhere.setdefault(f":py:obj:`{place.rpartition('.')[2]} <{place}>`", []).append(link)
        elif owner.__module__ != "builtins":
            shown.append(attribute)
    return shown, elsewhere


def add_headings(app, what, name, obj, options, lines) -> None:
    """Headings among the parameters, after numpydoc has made a list of them."""
    for parameter, heading in HEADINGS.get(name.rpartition(".")[2], {}).items():
        at = next(i for i, line in enumerate(lines) if line.strip().startswith(f"**{parameter}**"))
        indent = " " * (len(lines[at]) - len(lines[at].lstrip()))
        lines[at:at] = [f"{indent}.. rubric:: {heading}", ""]
