"""Constructors: each parameter is written once, with its default, in the class that brings it."""

from __future__ import annotations

import functools
import inspect

__all__ = ["stores_parameters"]


def stores_parameters(init=None, *, extends=None):
    """Decorate an ``__init__`` whose body is empty: it stores its arguments under their names, as scikit-learn wants.

    Parameters
    ----------
    init : callable
    extends : class, optional
        Its constructor's parameters stand for the ``**shared`` at the end of this one's signature.
    """
    if init is None:
        return functools.partial(stores_parameters, extends=extends)
    own = list(inspect.signature(init).parameters.values())
    if extends is not None:
        names = {parameter.name for parameter in own}
        inherited = list(inspect.signature(extends.__init__).parameters.values())[1:]
        own = own[:-1] + [parameter for parameter in inherited if parameter.name not in names]
    signature = inspect.Signature(own)

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__
