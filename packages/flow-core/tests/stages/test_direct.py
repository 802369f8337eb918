"""The methods that are written out in one frame are those of their class in every other way."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core.flow import Flow
from flow_core.stages import Template
from flow_core.stages._direct import _METHODS
from flow_core.structure import stages_of

each_method = pytest.mark.parametrize("name", sorted(_METHODS))


def whatever(item: Any) -> Any:
    return item


@each_method
def test_it_says_what_the_method_of_the_class_says(name: str) -> None:
    method: Callable[..., Any] = getattr(Flow, name)
    known = method.__wrapped__  # type: ignore[attr-defined]
    assert inspect.signature(method) == inspect.signature(known)
    assert (method.__name__, method.__doc__) == (known.__name__, known.__doc__)
    assert method.__module__ == known.__module__


@each_method
def test_it_adds_the_stage_that_the_method_of_the_class_adds(name: str) -> None:
    numbers = flow.range(3)
    known = getattr(Flow, name).__wrapped__
    made, other = getattr(numbers, name)(whatever), known(numbers, whatever)
    (stage,), (expected,) = stages_of(made), stages_of(other)
    assert (stage.template, stage.args) == (expected.template, expected.args)
    assert repr(made) == repr(other)


@each_method
def test_its_argument_can_be_given_by_name(name: str) -> None:
    (_, argument) = inspect.signature(getattr(Flow, name)).parameters
    (stage,) = stages_of(getattr(flow.range(3), name)(**{argument: whatever}))
    assert stage.args == (whatever,)


@each_method
@pytest.mark.parametrize("function", [3, None, "len"], ids=repr)
def test_a_value_that_is_not_a_function_is_refused_by_name(name: str, function: object) -> None:
    with pytest.raises(TypeError, match=rf"{name}\(\) takes a function"):
        getattr(flow.range(3), name)(function)


@each_method
def test_a_coroutine_function_is_refused(name: str) -> None:
    async def later(item: object) -> object:
        return item

    with pytest.raises(TypeError, match=r"(?s)coroutine.*map_concurrent"):
        getattr(flow.range(3), name)(later)


def test_a_traceback_shows_the_method_by_its_name() -> None:
    with pytest.raises(TypeError) as caught:
        flow.range(3).map(3)  # type: ignore[arg-type]
    assert "map" in [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]


def test_a_long_chain_and_a_short_one_keep_the_arguments_of_each_stage() -> None:
    add = Template("plus", params=("n",), on_item="x = x + n\nEMIT")
    for length in (1, 4, 5, 6, 7, 70):
        made: Flow[int] = flow.just(0)
        for n in range(length):
            stage: flow.Stage[int, int] = flow.Stage(add, n)
            made = made.pipe(stage) if n % 2 else made._add(add, n)
        assert [stage.args for stage in stages_of(made)] == [(n,) for n in range(length)]
        assert made.first() == sum(range(length))
        assert list(made) == [sum(range(length))]
