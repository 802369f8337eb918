"""Methods of another package, under its name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core import FlowError, NoSuchNameError, register_namespace
from flow_core.flow import NAMESPACES


@pytest.fixture(autouse=True)
def _none_stays() -> Iterator[None]:
    before = dict(NAMESPACES)
    yield
    NAMESPACES.clear()
    NAMESPACES.update(before)


class Halves:
    def __init__(self, made: flow.Flow[int]) -> None:
        self._made = made

    def all(self) -> flow.Flow[float]:
        return self._made.map(lambda n: n / 2)


def test_a_namespace_is_called_with_the_flow() -> None:
    assert register_namespace("halves")(Halves) is Halves
    made: Any = flow.range(3)
    assert list(made.map(lambda n: n + 1).halves.all()) == [0.5, 1.0, 1.5]
    assert list(made.pipe(Halves).all()) == [0.0, 0.5, 1.0]
    assert "halves" in dir(made)


@pytest.mark.parametrize("name", ["map", "debounce", "spark", "_own", "Own", "two words", ""])
def test_names_of_a_flow_and_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}'|'{name}"):
        register_namespace(name)


def test_a_name_has_one_owner() -> None:
    register_namespace("halves")(Halves)
    register_namespace("halves")(Halves)
    with pytest.raises(FlowError, match=r"'halves' belongs to .*\.Halves, not .*Other"):

        @register_namespace("halves")
        class Other:
            pass


def test_a_namespace_that_is_not_registered_is_missing() -> None:
    with pytest.raises(NoSuchNameError, match="Flow has no 'halves'"):
        flow.range(3).halves  # type: ignore[attr-defined]  # noqa: B018
