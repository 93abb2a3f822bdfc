"""Adversaries: where the hypothetical queries of Algorithm 1 come from, by ascent, in closed form, or given."""

from inspect import signature

from skfairrank.adversaries._ascent import Ascent, GapsAscent
from skfairrank.adversaries._base import Adversary, Attack, ClosedForm
from skfairrank.adversaries._box import ExactBox, ExactGaps, Zeros
from skfairrank.adversaries._budget import ExactBudget
from skfairrank.adversaries._given import GivenHypotheticals
from skfairrank.adversaries._plausible import PLAUSIBLE

__all__ = [
    "Adversary",
    "Ascent",
    "Attack",
    "ClosedForm",
    "ExactBox",
    "ExactBudget",
    "ExactGaps",
    "GapsAscent",
    "GivenHypotheticals",
    "Zeros",
]

#: The names that ``SenSTIRRanker(adversary=...)`` knows.
ADVERSARIES = {
    "ascent": Ascent,
    "exact": ExactBudget,
    "exact_box": ExactBox,
    "gaps": ExactGaps,
    "gaps_ascent": GapsAscent,
    "given": GivenHypotheticals,
}


def make_adversary(adversary, settings=None) -> Adversary:
    """The adversary that a parameter names, or that it is.

    Parameters
    ----------
    adversary : str or Adversary
        A name reads its parameters among the settings; an object brings its own.
    settings : object, optional
        Has the parameters of all named adversaries as attributes.

    Raises
    ------
    ValueError, TypeError
        If it is neither one of the names nor an adversary, or the settings bound what an adversary in closed form may reach.
    """
    if isinstance(adversary, str):
        if adversary not in ADVERSARIES:
            raise ValueError(f"adversary={adversary!r}: choose one of {sorted(ADVERSARIES)}, or give an adversary.")
        kind = ADVERSARIES[adversary]
        names = [] if settings is None else list(signature(kind).parameters)
        _refuse_what_it_lacks(adversary, names, settings)
        return kind(**{name: getattr(settings, name) for name in names})
    if isinstance(adversary, type) or not callable(getattr(adversary, "prepare", None)):
        raise TypeError(
            f"adversary={adversary!r}: choose one of {sorted(ADVERSARIES)}, or give an object such as "
            "skfairrank.adversaries.ExactBox(subspace_radius=1.0, feature_radius=0.02)."
        )
    return adversary


def _refuse_what_it_lacks(adversary: str, names: list[str], settings) -> None:
    """Raise where settings bound what an attack may reach, or centre scores, and this adversary has no such parameter."""
    for bound in PLAUSIBLE:
        if bound in names or getattr(settings, bound, None) is None:
            continue
        remedy = (
            "it takes rows as they are given. Bound them where they are made, by "
            "hypotheticals=Hypotheticals(..., feature_range=...)"
            if adversary == "given"
            else 'its closed form moves all items alike, wherever they lie. Use adversary="ascent" or "gaps_ascent"'
        )
        raise ValueError(
            f"{bound} bounds what an attack may reach, and adversary={adversary!r} knows no such bounds: {remedy}, or "
            f"{bound}=None."
        )
    if "score_distance" not in names and getattr(settings, "score_distance", "squared") == "centered":
        raise ValueError(
            f'score_distance="centered" compares changes with those of the other items of a query, and adversary={adversary!r} '
            'chooses the worst row of each item by itself: use score_distance="squared".'
        )
