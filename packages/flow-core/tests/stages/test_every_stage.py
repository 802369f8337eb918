"""Each stage gives the same in every form in which a flow can run."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, Template, stages
from flow_core.stages import _filtering as filtering
from flow_core.structure import source_of, stages_of
from flow_testing import STAGE_CASES, StageCase, assert_result

INPUTS = [(), (5,), tuple(range(10)), (1, 1, 2, 3, 3, 3, 1, 7, 7)]
SOURCES: dict[str, Callable[[tuple[int, ...]], Flow[int]]] = {
    "items": flow.from_iterable,
    "generator": lambda items: flow.from_iterable(item for item in items),
}

each_case = pytest.mark.parametrize("case", STAGE_CASES, ids=lambda case: case.name)


class FailureError(Exception):
    """The exception with which a source in these tests fails."""


def templates_of(case: StageCase) -> set[Template]:
    return {stage.template for stage in stages_of(case.apply(flow.range(3)))}


def templates() -> Iterator[Template]:
    for module in pkgutil.iter_modules(stages.__path__):
        found = vars(import_module(f"{stages.__name__}.{module.name}")).values()
        yield from (value for value in found if isinstance(value, Template))


def failing(items: tuple[int, ...], error: Exception) -> Iterator[int]:
    yield from items
    raise error


def test_the_table_of_cases_has_every_template() -> None:
    covered = set[Template]().union(*map(templates_of, STAGE_CASES))
    assert set(templates()) - covered == {filtering.CHECK}


def test_the_table_of_cases_has_every_method_that_adds_a_stage() -> None:
    used: set[str] = set()

    class Spy:
        def __getattr__(self, name: str) -> Callable[..., Any]:
            used.add(name)
            return lambda *_, **__: self

        def __getitem__(self, key: object) -> Any:
            used.add("element_at" if isinstance(key, int) else "slice")
            return self

    for case in STAGE_CASES:
        case.apply(Spy())  # type: ignore[arg-type]  # it stands for a flow
    others = {
        *("pipe", "then", "moved", "hide", "do_on_request", "subscribe"),
        *("context_capture", "context_write", "local"),
        *("iterate", "aiterate", "run", "run_async", "for_each", "for_each_async"),
        *("first", "last", "single", "to_future"),
        *("source", "stages", "boundary", "called"),
        *("slice", "tap"),  # by brackets; another name of do_action
    }
    for cls in Flow.__mro__:
        if cls.__module__.startswith("flow_core.surface."):
            others |= set(vars(cls))  # other packages have these
    assert {name for name in dir(Flow) if not name.startswith("_")} - others == used - {"slice"}


def test_the_names_of_the_cases_are_unique() -> None:
    assert len({case.name for case in STAGE_CASES}) == len(STAGE_CASES)


@pytest.mark.checklist("F01", "F12", "F13", "F14", "F17", "F22", "F37", "F40", "F52", "F59")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("items", INPUTS, ids=str)
@each_case
def test_the_result_is_the_same_in_every_form(
    case: StageCase, items: tuple[int, ...], source: str
) -> None:
    assert_result(lambda: case.apply(SOURCES[source](items)), case.model(list(items)))


@pytest.mark.parametrize("items", [(), (1, 1, 2, 3, 3)], ids=str)
@each_case
def test_an_error_of_the_source_follows_what_was_emitted_before(
    case: StageCase, items: tuple[int, ...]
) -> None:
    """A stage that has stopped never sees it; one that waits for the end emits no rest."""
    error = FailureError()

    def make() -> Flow[Any]:
        return case.apply(flow.from_iterable(failing(items, error)))

    seen: list[object] = []
    raised: list[BaseException] = []
    try:
        seen.extend(make())
    except FailureError as failure:
        raised.append(failure)
    templates = templates_of(case)
    complete = case.model(list(items))
    at_end = any(template.emits_at_end for template in templates)
    recovers = any(template.recovers for template in templates)
    # Without a rest at the end: what comes out of the whole, as far as it is the same for more.
    if not recovers:
        assert seen == (complete if not at_end else case.model([*items, *items])[: len(seen)])
    assert raised in ([error], [])
    stopped = not raised
    source = flow.from_iterable(items)
    reads = source_of(case.apply(source)) is source_of(source)
    assert stopped <= any(template.stops for template in templates) | recovers | (not reads)
    assert_result(make, seen, None if stopped else error)


PAIRED = [
    case
    for case in STAGE_CASES
    if case.name
    in {
        *("map", "filter", "flat_map_iterable", "take", "take 1", "skip", "take_while"),
        *("scan", "reduce", "to_list", "count", "distinct", "distinct_until_changed"),
        *("pairwise", "buffer_with_count", "buffer_with_count overlapping"),
    }
]


@pytest.mark.many
@pytest.mark.parametrize("second", PAIRED, ids=lambda case: case.name)
@pytest.mark.parametrize("first", PAIRED, ids=lambda case: case.name)
def test_two_stages_give_what_they_give_one_after_the_other(
    first: StageCase, second: StageCase
) -> None:
    both = first.then(second)
    items = (3, 1, 4, 1, 5, 9, 2, 6)
    assert_result(
        lambda: both.apply(flow.from_iterable(items)),
        both.model(list(items)),
        only=lambda form: not any(kind in form for kind in ("async", "race", "threads")),
    )
