"""Calls that Python would refuse with a TypeError about its own rules: here they say how to name the queries instead."""

from __future__ import annotations

import functools
import inspect

__all__ = ["names_queries"]

# What other libraries call the queries, or their sizes.
_ELSEWHERE = ("group", "groups", "group_id", "query_id", "group_sizes")


def names_queries(method):
    """Decorate a method or function that takes `qid` by keyword: other ways to say which rows belong together get the remedy.

    A positional qid, as in ``fit(X, y, qid)``, and `group=`, which for LightGBM are sizes, raise a TypeError that names ``qid=``.
    """
    signature = inspect.signature(method)
    taken = signature.parameters
    positional = [p.name for p in taken.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    shown = ", ".join([name for name in positional if name != "self"][:3] + ["qid=qid"])
    takes_any = any(p.kind == p.VAR_KEYWORD for p in taken.values())

    @functools.wraps(method)
    def checked(*args, **kwargs):
        if len(args) > len(positional):
            raise TypeError(
                f"{method.__name__} takes the query ids by keyword: call {method.__name__}({shown}), with one query id for each "
                "row."
            )
        if not takes_any:
            for name in _ELSEWHERE:
                if name in kwargs and name not in taken:
                    raise TypeError(
                        f"{method.__name__} takes no {name}: pass qid=, one query id for each row "
                        "(np.repeat(np.arange(len(sizes)), sizes) turns the sizes of queries into ids)."
                    )
        return method(*args, **kwargs)

    return checked
