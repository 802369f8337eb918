"""The messages that a user sees after using something otherwise than it is meant.

A usage with a plain meaning works; any other is refused at once, with what to do. Only
what a function of the user gives is known no sooner than it is called.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_cli.progress import progress
from flow_core import BlockingInEventLoopError, FlowError, NoConverterError, TooManyItemsError
from flow_ops import Backoff, observe_on

FLOW: Any = flow.range(3)
Make = Callable[[], Any]


async def fetch(n: int) -> int:
    await asyncio.sleep(0)
    return n * 10


async def ticks(n: int) -> AsyncIterator[int]:
    yield n
    yield -n


@pytest.mark.parametrize(
    ("make", "items"),
    [
        (lambda: FLOW.flat_map(lambda n: [n, n]), [0, 0, 1, 1, 2, 2]),
        (lambda: FLOW.flat_map(lambda n: (n, "a")), [0, "a", 1, "a", 2, "a"]),
        (lambda: FLOW.flat_map(range), [0, 0, 1]),
        (lambda: FLOW.flat_map(lambda n: (m for m in range(n))), [0, 0, 1]),
        (lambda: FLOW.flat_map(fetch), [0, 10, 20]),
        (lambda: FLOW.flat_map(lambda n: fetch(n)), [0, 10, 20]),
        (lambda: FLOW.concat_map(ticks), [0, 0, 1, -1, 2, -2]),
        (lambda: FLOW.concat_map_eager(fetch), [0, 10, 20]),
        (lambda: FLOW.switch_map(lambda n: [n, n]), [0, 0, 1, 1, 2, 2]),
        (lambda: FLOW.hide().flat_map(lambda n: {n}), [0, 1, 2]),
        (lambda: flow.just(3).concat_map(range), [0, 1, 2]),
        (lambda: flow.defer(lambda: [1, 2]), [1, 2]),
        (lambda: flow.defer(lambda: fetch(1)), [10]),
        (lambda: flow.error(KeyError()).on_error_resume(lambda error: [7]), [7]),
        (lambda: FLOW.pipe(lambda made: made.map(str), lambda made: made.take(1)), ["0"]),
    ],
)
@pytest.mark.parametrize("where", ["in a thread", "in a loop"])
def test_usages_with_a_plain_meaning_work(make: Make, items: list[Any], where: str) -> None:
    async def in_loop() -> list[Any]:
        return [item async for item in make()]

    assert (asyncio.run(in_loop()) if where == "in a loop" else list(make())) == items


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: FLOW.map(FLOW), TypeError, "map() takes a function as 'mapper', not range(0, 3)"),
        (lambda: FLOW.filter(3), TypeError, "filter() takes a function as 'predicate', not 3"),
        (lambda: FLOW.take("2"), TypeError, "take(count) takes an int, not '2'"),
        (lambda: FLOW.map(fetch), TypeError, "nothing would await it: map_concurrent() awaits one"),
        (lambda: FLOW.pipe(observe_on), TypeError, "called first: pipe(observe_on(...))"),
        (lambda: FLOW.pipe(progress), TypeError, "it makes an operator; call it: pipe(progress("),
        (lambda: FLOW.pipe(3), TypeError, "pipe() takes functions of a flow, and operators, not 3"),
        (lambda: flow.zip([1, 2], FLOW), TypeError, "zip() takes"),
        (lambda: flow.from_("abc"), NoConverterError, "is it one item, or many?"),
        (lambda: flow.from_(5), NoConverterError, "flow_core.just(5) is a flow of it as one item"),
        (lambda: flow.from_(fetch), NoConverterError, "flow_core.from_callable(fetch)"),
        (lambda: flow.from_(str), NoConverterError, "is a class; make an object of it first"),
        (lambda: FLOW.subscribe(FLOW), TypeError, "subscribe() takes a subscriber or a function"),
        (
            lambda: FLOW.subscribe(fetch),
            TypeError,
            "`await flow.for_each_async(function)`",
        ),
        (lambda: FLOW.subscribe(print, fetch), TypeError, "fetch is a coroutine function"),
        (lambda: FLOW.timeout(), TypeError, "timeout()"),
        (lambda: flow.create(fetch), TypeError, "create()"),
        (lambda: FLOW.observe_on(None), TypeError, "an executor has submit(task), like a Thread"),
        (lambda: FLOW.group_by(fetch), TypeError, "group_by() takes a function that gives its res"),
        (lambda: FLOW.group_by(bool, value=fetch), TypeError, "fetch is a coroutine function"),
        (lambda: flow.using(fetch, flow.just), TypeError, "using_when() takes async context"),
        (lambda: flow.using(open, fetch), TypeError, "using_when() takes async context managers"),
        (lambda: flow.from_callable(fetch), TypeError, "defer(function) is a flow of what it ret"),
        (lambda: FLOW.take_until(flow.never()), TypeError, "; take_until_other() takes a flow"),
        (lambda: FLOW | observe_on, TypeError, "write flow.pipe(observe_on)"),
        (lambda: FLOW + FLOW, TypeError, "a.concat(b) is one after the other, a.merge(b) both at"),
        (lambda: list(FLOW.publish()), TypeError, "iterate over .ref_count() or .auto_connect()"),
        (
            lambda: FLOW.publish().map(str),
            AttributeError,
            "continue with .ref_count().map, .auto_c",
        ),
        (lambda: FLOW.chunk(2), AttributeError, "here it is batch"),
    ],
)
def test_usages_without_a_plain_meaning_are_refused_at_once(
    make: Make, error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as caught:
        make()
    notes = " ".join(getattr(caught.value, "__notes__", ()))
    assert says in f"{caught.value} {notes}"


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: FLOW.flat_map(lambda n: n), TypeError, "the mapper gave 0, not a Flow: no conv"),
        (lambda: FLOW.flat_map(lambda n: "ab"), TypeError, "is it one item, or many?"),
        (lambda: FLOW.flat_map(lambda n: None), FlowError, "return empty() for none"),
        (
            lambda: FLOW.map_concurrent(lambda n: n, 2, timeout=1),
            TypeError,
            "which cannot be awaited; map_concurrent(timeout=, loop=) are for coroutine functions",
        ),
        (lambda: FLOW.map(lambda n: 1 // n), ZeroDivisionError, "division"),
        (lambda: FLOW.map(print), FlowError, "map(print) gave None, which is not an item"),
        (
            lambda: FLOW.map(lambda n: 1 // n).retry_when(Backoff(0, max_attempts=2)),
            FlowError,
            "retries exhausted: 2 of 2; the last failure: ZeroDivisionError(",
        ),
    ],
)
def test_a_wrong_result_of_a_function_is_refused_when_it_is_returned(
    make: Callable[[], flow.Flow[Any]], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=re.escape(says)) as caught:
        list(make())
    notes = " ".join(getattr(caught.value, "__notes__", ()))
    assert "test_usages.py:" in f"{caught.value} {notes}", "it does not say where"


def test_wrong_ways_to_wait_in_a_loop_name_the_right_ones() -> None:
    async def wrong() -> None:
        with ThreadPoolExecutor(1) as pool, pytest.raises(BlockingInEventLoopError) as blocking:
            list(FLOW.observe_on(pool))
        assert "async for" in str(blocking.value)
        with pytest.raises(TooManyItemsError, match="to_list"):
            await FLOW

    asyncio.run(wrong())
