"""Adversaries: where the hypothetical queries of Algorithm 1 come from, by ascent, in closed form, or given."""

from skfairrank.adversaries._ascent import Ascent, GapsAscent
from skfairrank.adversaries._base import Adversary, Attack
from skfairrank.adversaries._exact import ClosedForm, ExactBox, ExactBudget, ExactGaps
from skfairrank.adversaries._given import GivenHypotheticals

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
]

#: The names that ``SenSTIRRanker(adversary=...)`` knows, each for an object with its defaults.
ADVERSARIES = {
    "ascent": Ascent,
    "exact": ExactBudget,
    "exact_box": ExactBox,
    "gaps": ExactGaps,
    "gaps_ascent": GapsAscent,
    "given": GivenHypotheticals,
}


def make_adversary(adversary) -> Adversary:
    """The adversary that a parameter names, with its defaults, or that it is.

    Raises
    ------
    ValueError, TypeError
        If it is neither one of the names nor an adversary.
    """
    if isinstance(adversary, str):
        if adversary not in ADVERSARIES:
            raise ValueError(f"adversary={adversary!r}: choose one of {sorted(ADVERSARIES)}, or give an adversary.")
        return ADVERSARIES[adversary]()
    if isinstance(adversary, type) or not callable(getattr(adversary, "prepare", None)):
        raise TypeError(
            f"adversary={adversary!r}: choose one of {sorted(ADVERSARIES)}, or give an object such as "
            "skfairrank.adversaries.ExactBox(subspace_radius=1.0, feature_radius=0.02)."
        )
    return adversary
