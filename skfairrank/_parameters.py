"""Constructors: each parameter is written once, with its default, in the class that brings it."""

from __future__ import annotations

import functools
import inspect

__all__ = ["stores_parameters"]


def stores_parameters(init=None, *, extends=()):
    """Decorate an ``__init__`` whose body is empty: it stores its arguments under their names, as scikit-learn wants.

    Parameters
    ----------
    init : callable
    extends : class or tuple of classes
        Their constructors' parameters, by keyword, stand for the ``**shared`` at the end of this one's signature.
    """
    if init is None:
        return functools.partial(stores_parameters, extends=extends)
    own = inspect.signature(init).parameters
    parameters = {name: parameter for name, parameter in own.items() if parameter.kind != parameter.VAR_KEYWORD}
    for base in extends if isinstance(extends, tuple) else (extends,):
        for name, parameter in inspect.signature(base.__init__).parameters.items():
            parameters.setdefault(name, parameter.replace(kind=parameter.KEYWORD_ONLY))
    signature = inspect.Signature(list(parameters.values()))

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}() {error}") from None
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__
