"""Signatures whose annotations only a type checker can evaluate."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest

from flow_core.plugins.records import _factory_of
from flow_core.signatures import resolved, signature_of

LATE = """
def scaled(self: object, start: int = 0, scale: Decimal | None = None) -> list[Decimal]:
    return [start, scale]
"""


@pytest.fixture(params=["as text", "late"])
def scaled(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """A function, from a module with a future import or without."""
    if request.param == "late" and sys.version_info < (3, 14):
        pytest.skip("for Python 3.14, which evaluates annotations late")
    future = "from __future__ import annotations" if request.param == "as text" else ""
    names: dict[str, Any] = {}
    exec(compile(f"{future}\n{LATE}", "late", "exec", dont_inherit=True), names)
    made: Callable[..., Any] = names["scaled"]
    return made


def test_annotations_that_can_be_evaluated_are_and_the_rest_stays_text(
    scaled: Callable[..., Any],
) -> None:
    signature = signature_of(scaled)
    kinds = [resolved(each.annotation, scaled) for each in signature.parameters.values()]
    assert kinds == [object, int, "Decimal | None"]
    assert resolved(signature.return_annotation, scaled) == "list[Decimal]"


def test_a_method_becomes_an_operator(scaled: Callable[..., Any]) -> None:
    assert list(inspect.signature(_factory_of("scaled", scaled)).parameters) == ["start", "scale"]


def test_an_object_without_a_signature_is_refused() -> None:
    with pytest.raises(ValueError, match="no signature found"):
        signature_of(dict)
    with pytest.raises(TypeError, match="not a callable"):
        signature_of(5)  # type: ignore[arg-type]
