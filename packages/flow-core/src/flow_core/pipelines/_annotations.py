"""A function's annotations as objects."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import cast

__all__ = ["resolved"]


def resolved(annotation: object, function: Callable[..., object]) -> object:
    """The annotation itself, also if ``from __future__ import annotations`` made text of it.

    Args:
        annotation: as `inspect.signature` has it.
        function: whose it is.

    Returns:
        The annotation, or its text if it needs names that only type checkers import.
    """
    if not isinstance(annotation, str):
        return annotation
    inner = inspect.unwrap(getattr(function, "func", function))
    module = sys.modules.get(getattr(inner, "__module__", None) or "")
    # A function has globals; a class has those of its module.
    names = cast("dict[str, object]", getattr(inner, "__globals__", None) or vars(module or object))
    try:
        # The text is that of the program's own code, as the interpreter would evaluate it.
        return cast("object", eval(annotation, dict(names)))
    except Exception:
        return annotation
