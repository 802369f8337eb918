"""A function's signature, even if its annotations use names that only type checkers import."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import cast

__all__ = ["resolved", "signature_of"]


def signature_of(function: Callable[..., object]) -> inspect.Signature:
    """Return the signature of `function`; an annotation that cannot be evaluated is given as text.

    From Python 3.14 on, annotations are evaluated when they are looked at. If one of them fails,
    all annotations of the function are given as text, as with ``from __future__ import
    annotations``; see `resolved`.

    Raises:
        TypeError: if `function` cannot be called.
        ValueError: if `function` has no signature, like some functions in C.
    """
    try:
        return inspect.signature(function)
    except Exception:
        if sys.version_info >= (3, 14):
            from annotationlib import Format

            return inspect.signature(function, annotation_format=Format.STRING)
        raise


def resolved(annotation: object, function: Callable[..., object]) -> object:
    """Return the value of an annotation, even if `annotation` is given as text.

    Args:
        annotation: an annotation from the result of `signature_of`.
        function: the function that has the annotation.

    Returns:
        The value of the annotation, or its text if the annotation needs names that only type
        checkers import.
    """
    if not isinstance(annotation, str):
        return annotation
    inner = inspect.unwrap(getattr(function, "func", function))
    module = sys.modules.get(getattr(inner, "__module__", None) or "")
    # A function has globals; a class has those of its module.
    names = cast("dict[str, object]", getattr(inner, "__globals__", None) or vars(module or object))
    try:
        # The text is the program's own code, as the interpreter would evaluate it.
        return cast("object", eval(annotation, dict(names)))
    except Exception:
        return annotation
