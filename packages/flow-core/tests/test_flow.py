"""`Flow`: assembly, structure, and the ways to run it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, as_completed, wait
from functools import partial
from itertools import count
from threading import Event, Thread
from typing import Any

import pytest

import flow_core as flow
from flow_core import (
    AbsorbingSource,
    BlockingInEventLoopError,
    Flow,
    MissingBackpressureError,
    NoItemError,
    Operator,
    Stage,
    Template,
    TooManyItemsError,
    structure,
)
from flow_core.protocols import Publisher, Subscriber
from flow_core.structure import boundary_of, source_of, stages_of
from flow_testing import (
    TIMEOUT_S,
    Drops,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_result,
    race,
)


class FailureError(Exception):
    pass


# -- assembly


def test_a_flow_is_immutable_and_runs_again_for_each_subscriber() -> None:
    base = flow.range(5)
    evens, squares = base.filter(lambda n: n % 2 == 0), base.map(lambda n: n * n)
    assert [list(base), list(evens), list(squares), list(evens)] == [
        [0, 1, 2, 3, 4],
        [0, 2, 4],
        [0, 1, 4, 9, 16],
        [0, 2, 4],
    ]


def test_pipe_returns_whatever_the_operator_makes() -> None:
    counted: Operator[Any, int] = Operator("counted", lambda made: sum(1 for _ in made))
    assert flow.range(5).pipe(counted) == 5
    doubled: Operator[int, Flow[int]] = Operator("doubled", lambda made: made.map(lambda n: 2 * n))
    assert list(flow.range(3).pipe(doubled).pipe(doubled)) == [0, 4, 8]


def test_pipe_takes_operators_functions_and_stages() -> None:
    def halves(numbers: Flow[int]) -> Flow[float]:
        return numbers.map(lambda n: n / 2)

    every = Template("every", params=("n",), state="i = 0", on_item="i += 1\nif i % n == 0: EMIT")
    first: Operator[float, Flow[float]] = Operator("first", lambda made: made.take(2))
    assert list(flow.range(4).pipe(halves, first, Stage(every, 2))) == [0.5]
    assert list(flow.range(4).pipe()) == [0, 1, 2, 3]
    assert flow.range(4).pipe(halves, list) == [0.0, 0.5, 1.0, 1.5]
    assert flow.range(4).pipe(lambda made: made.count()).single() == 4


def test_pipe_refuses_a_value_that_is_not_a_step() -> None:
    for wrong in ("map", None, 3, flow.range(3)):
        with pytest.raises(TypeError, match=r"pipe\(\) takes functions of a flow, and op"):
            flow.range(3).pipe(wrong)  # type: ignore[call-overload]  # the mistake
    with pytest.raises(TypeError, match=r"<function .* follows \[0, 1, 2\], which is not a flow"):
        flow.range(3).pipe(list, lambda made: made)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"pipe\(named\): it makes an operator; call it: pipe"):
        flow.range(3).pipe(named)
    with pytest.raises(TypeError) as caught:
        flow.range(3).pipe(halve)
    (note,) = caught.value.__notes__
    assert note.startswith("pipe() has called halve with a flow; what makes operators is called fi")


def named(name: Any) -> Operator[int, Flow[int]]:
    return Operator("named", lambda numbers: numbers)


def halve(number: Any) -> Any:
    return number / 2


def test_an_operator_may_return_the_flow_itself_or_one_that_was_there_before() -> None:
    same: Operator[Any, Flow[Any]] = Operator("same", lambda made: made)
    base = flow.range(3)
    piped = base.pipe(same).map(str)
    assert list(piped) == ["0", "1", "2"]
    assert boundary_of(base) is None
    assert list(structure.moved(piped, lambda source: source.hide())) == ["0", "1", "2"]
    shared = flow.just("shared")
    replaced: Operator[Any, Flow[Any]] = Operator("replaced", lambda _: shared)
    assert list(base.pipe(replaced)) == ["shared"]
    assert boundary_of(shared) is None


def test_the_structure_of_a_flow_can_be_read() -> None:
    base = flow.range(5)
    first = base.map(str).filter(bool)
    behind = first.hide().take(3)
    assert [stage.name for stage in stages_of(first)] == ["map", "filter"]
    assert boundary_of(first) is None
    assert [stage.name for stage in stages_of(behind)] == ["take"]
    boundary = boundary_of(behind)
    assert boundary is not None
    assert boundary[0] is first
    assert boundary[1].name == "hide"
    assert repr(behind) == "range(0, 5) | map(str) | filter(bool) | hide() | take(count=3)"


def test_the_text_of_a_flow_names_functions_and_their_places() -> None:
    text = repr(flow.range(3).map(lambda n: n).scan(max, 0).distinct(key=str).do_on_next(print))
    assert "map(<lambda test_flow.py:" in text
    assert "scan(max, seed=0)" in text
    assert "distinct(str)" in text
    assert "do_on_next(print)" in text
    assert len(repr(flow.range(3).reduce(max, "x" * 1000))) < 100


def test_a_flow_can_be_moved_to_another_first_source() -> None:
    as_text: Operator[int, Flow[str]] = Operator("as_text", lambda made: made.map(str))
    made = flow.range(5).map(lambda n: n + 1).hide().filter(lambda n: n % 2).pipe(as_text)
    moved = structure.moved(made, lambda source: source.map(lambda n: n * 10).hide())
    assert list(moved) == ["1", "11", "21", "31", "41"]
    assert list(made) == ["1", "3", "5"]
    assert [stage.name for stage in stages_of(moved)] == ["filter", "map"]
    assert stages_of(moved)[0].assembled_at == stages_of(made)[0].assembled_at
    assert list(structure.moved(flow.range(3), lambda _: flow.just(7))) == [7]


@pytest.mark.parametrize(
    "apply",
    [
        lambda made: Flow(made).map(lambda n: n + 1),
        lambda made: Flow(made.map(lambda n: n + 1)).hide(),
        lambda made: Flow(Flow(made).hide().map(lambda n: n + 1)).filter(lambda _: True),
        lambda made: made.hide().map(lambda n: n + 1).hide(),
        lambda made: made.map(lambda n: n + 1).pipe(
            Operator("same", lambda flow: flow.map(lambda n: n))
        ),
    ],
)
def test_an_operator_may_be_made_of_others(apply: Callable[[Flow[int]], Flow[int]]) -> None:
    composed: Operator[int, Flow[int]] = Operator("composed", apply)
    made = flow.range(3).map(lambda n: n * 2).pipe(composed).filter(lambda n: n > 1)
    assert list(made) == [3, 5]
    moved = structure.moved(made, lambda source: source.map(lambda n: n + 10).hide())
    assert list(moved) == [21, 23, 25]
    assert list(structure.moved(made, lambda _: flow.just(7))) == [15]
    first = made
    while boundary_of(first) is not None:
        first = boundary_of(first)[0]
    assert repr(source_of(first)) == "range(0, 3)"


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda f: f.take(-1), "take.*0 or more"),
        (lambda f: f.skip(-1), "skip.*0 or more"),
        (lambda f: f.buffer_with_count(0), "1 or more"),
        (lambda f: f.buffer_with_count(-1), "1 or more"),
        (lambda f: f.buffer_with_count(1, 0), "1 or more"),
        (lambda f: f.buffer_with_count(1, -1), "1 or more"),
        (lambda f: f.iterate(prefetch=0), "prefetch"),
        (lambda f: f.subscribe(print, prefetch=0), "prefetch"),
    ],
)
def test_wrong_amounts_are_refused_where_the_flow_is_assembled(
    add: Callable[[Flow[int]], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        add(flow.range(3))


@pytest.mark.parametrize("wrong", [1.0, "1", None, True])
def test_amounts_are_ints(wrong: Any) -> None:
    for add in (
        lambda f: f.take(wrong),
        lambda f: f.skip(wrong),
        lambda f: f.buffer_with_count(wrong),
    ):
        with pytest.raises(TypeError, match="int"):
            add(flow.range(3))


class Absorbing(AbsorbingSource[int]):
    """Runs leading maps where its items are."""

    def __init__(self, taken: tuple[Stage[Any, Any], ...] = ()) -> None:
        self.taken = taken

    def absorb(
        self, stages: tuple[Stage[Any, Any], ...]
    ) -> tuple[Publisher[Any], tuple[Stage[Any, Any], ...]]:
        if any(stage.name == "scan" for stage in stages):
            raise flow.FlowError("scan has no meaning here")
        count = next((i for i, s in enumerate(stages) if s.name != "map"), len(stages))
        return Absorbing(stages[:count]), stages[count:]

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        made: Flow[Any] = flow.range(5)
        for stage in self.taken:
            made = made.pipe(stage)
        made.hide().subscribe(subscriber)


def test_a_source_may_absorb_the_stages_that_follow() -> None:
    assert_result(
        lambda: Flow(Absorbing()).map(lambda n: n + 1).filter(lambda n: n > 2).map(str),
        ["3", "4", "5"],
    )
    assert_result(lambda: Flow(Absorbing()).hide().map(str), list("01234"))


def test_a_source_that_refuses_a_stage_fails_the_flow() -> None:
    made = Flow(Absorbing()).scan(lambda a, b: a + b)
    subscriber = TestSubscriber[int]()
    made.subscribe(subscriber)
    subscriber.assert_failure(flow.FlowError)
    with pytest.raises(flow.FlowError, match="scan has no meaning here"):
        list(made)


# -- iteration


def test_iterating_an_asynchronous_flow_prefetches_a_bounded_number() -> None:
    publisher = TestPublisher[int]()
    items = Flow(publisher).iterate(prefetch=4)
    assert publisher.subscribed == 0
    thread = Thread(target=lambda: seen.extend(items))
    seen: list[int] = []
    subscribed = Event()
    publisher._on_request = lambda _publisher, _n: subscribed.set()
    thread.start()
    assert subscribed.wait(TIMEOUT_S)
    publisher.assert_requests(4)
    publisher.next(1, 2, 3).complete()
    thread.join(TIMEOUT_S)
    assert seen == [1, 2, 3]


def test_iterating_refills_at_75_percent() -> None:
    taken = 0

    def counted(n: int) -> int:
        nonlocal taken
        taken += 1
        return n

    items = flow.range(100).map(counted).hide().iterate(prefetch=8)
    seen = []
    for item in items:
        seen.append(item)
        assert taken <= len(seen) + 8
    assert seen == list(range(100))


def test_more_than_was_prefetched_is_an_error_after_what_was_asked_for() -> None:
    def send(publisher: TestPublisher[int], n: int) -> None:
        publisher.next(*range(n + 3)).complete()

    for run in (list, iterated_async):
        publisher = TestPublisher[int](Violation.OVERFLOW, on_request=send)
        seen: list[int] = []

        def keep(n: int, seen: list[int] = seen) -> int:
            seen.append(n)
            return n

        with pytest.raises(MissingBackpressureError):
            run(Flow(publisher).hide())
        publisher.assert_cancelled()


def iterated_async(made: Flow[Any]) -> list[Any]:
    async def consume() -> list[Any]:
        return [item async for item in made]

    return asyncio.run(asyncio.wait_for(consume(), TIMEOUT_S))


def test_leaving_an_iteration_cancels() -> None:
    publisher = TestPublisher[int](on_request=lambda p, n: p.next(*range(n)))
    for item in Flow(publisher):
        assert item == 0
        break
    publisher.assert_cancelled()


def test_first_last_and_single() -> None:
    for source in (flow.range(3, 6), flow.range(3, 6).hide()):
        assert source.first() == 3
        assert source.last() == 5
        assert source.take(1).single() == 3
        with pytest.raises(TooManyItemsError):
            source.single()
    for nothing in (flow.empty(), flow.empty().hide()):
        for run in (nothing.first, nothing.last, nothing.single):
            with pytest.raises(NoItemError):
                run()
    for failing in (flow.error(FailureError()), flow.error(FailureError()).hide()):
        for run in (failing.first, failing.last, failing.single):
            with pytest.raises(FailureError):
                run()
    assert flow.from_iterable(count()).first() == 0
    with pytest.raises(TooManyItemsError):
        flow.from_iterable(count()).single()


# -- asyncio


def run(main: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(main, TIMEOUT_S)

    return asyncio.run(bounded())


def test_async_iteration_of_synchronous_and_other_flows() -> None:
    for made in (flow.range(300), flow.range(300).hide().map(lambda n: n)):
        assert iterated_async(made) == list(range(300))


def test_async_iteration_gets_items_of_another_thread() -> None:
    publisher = TestPublisher[int]()
    requested = Event()
    publisher._on_request = lambda _publisher, _n: requested.set()

    def send() -> None:
        assert requested.wait(TIMEOUT_S)
        for item in range(50):
            publisher.next(item)
        publisher.complete()

    thread = Thread(target=send)
    thread.start()
    assert iterated_async(Flow(publisher).map(str)) == [str(n) for n in range(50)]
    thread.join(TIMEOUT_S)


def test_leaving_an_async_iteration_cancels() -> None:
    publisher = TestPublisher[int](on_request=lambda p, n: p.next(*range(n)))

    async def main() -> None:
        items = aiter(Flow(publisher))
        assert await anext(items) == 0
        await items.aclose()  # type: ignore[attr-defined]  # an asynchronous generator

    run(main())
    publisher.assert_cancelled()


def test_a_cancelled_task_cancels_its_flow() -> None:
    publisher = TestPublisher[int]()

    async def main() -> None:
        task = asyncio.create_task(anext(aiter(Flow(publisher))))  # type: ignore[arg-type]
        while not publisher.requests:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())
    publisher.assert_cancelled()


def test_awaiting_a_flow_gives_its_only_item() -> None:
    async def main() -> None:
        assert await flow.just(5) == 5
        assert await flow.range(9).hide().count() == 9
        with pytest.raises(NoItemError):
            await flow.empty()
        with pytest.raises(TooManyItemsError):
            await flow.range(2)
        with pytest.raises(FailureError):
            await flow.error(FailureError())

    run(main())


def test_blocking_in_a_running_event_loop_is_refused() -> None:
    async def main() -> None:
        never = flow.never()
        for blocking in (lambda: list(never), never.first, never.last, never.run):
            with pytest.raises(BlockingInEventLoopError, match="async for"):
                blocking()

    run(main())


def test_items_that_come_without_waiting_are_given_in_a_running_event_loop() -> None:
    async def main() -> None:
        hidden = flow.range(300).hide()
        assert list(hidden) == list(range(300))
        assert hidden.last() == 299
        with pytest.raises(FailureError):
            list(flow.error(FailureError()).hide())
        seen: list[int] = []
        ended: list[str] = []
        both = flow.create(lambda emitter: emitter.next(1)).do_on_cancel(
            lambda: ended.append("left")
        )
        with pytest.raises(BlockingInEventLoopError, match="async for"):
            seen.extend(both)
        assert (seen, ended) == ([1], ["left"])

    run(main())


def test_items_that_another_thread_sends_are_refused_in_a_running_event_loop() -> None:
    def by_another(emitter: flow.Emitter[int]) -> None:
        def send() -> None:
            emitter.next(1)
            emitter.complete()

        thread = Thread(target=send)
        thread.start()
        thread.join()  # it is there before anybody waits

    async def main() -> None:
        with pytest.raises(BlockingInEventLoopError, match="async for"):
            list(flow.create(by_another))

    run(main())


def test_an_asynchronous_generator_can_be_fed_by_a_flow() -> None:
    async def doubled(items: AsyncIterator[int]) -> AsyncIterator[int]:
        async for item in items:
            yield 2 * item

    async def main() -> list[int]:
        return [item async for item in doubled(aiter(flow.range(3)))]

    assert run(main()) == [0, 2, 4]


# -- futures


def test_a_cancelled_future_wakes_threads_that_wait_for_several() -> None:
    before, after = flow.never().to_future(), flow.never().to_future()
    assert before.cancel()
    assert wait([before], timeout=TIMEOUT_S).not_done == set()
    thread = Thread(target=after.cancel)
    thread.start()
    assert {*as_completed([before, after], timeout=TIMEOUT_S)} == {before, after}
    thread.join(TIMEOUT_S)


def test_a_future_is_cancelled_while_its_flow_ends(drops: Drops) -> None:
    for error in (None, FailureError()):
        for _ in range(50):
            source = TestPublisher[int]()
            future = Flow(source).to_future()
            source.next(1)
            race(future.cancel, source.complete if error is None else partial(source.error, error))
            assert wait([future], timeout=TIMEOUT_S).done == {future}
            if error is None:
                assert future.cancelled() or future.result() == 1
            else:
                assert future.cancelled() or future.exception() is error
    assert set(drops.take_errors()) <= {error}


def test_to_future_gives_the_only_item() -> None:
    assert flow.range(5).count().to_future().result(TIMEOUT_S) == 5
    assert isinstance(flow.empty().to_future().exception(TIMEOUT_S), NoItemError)
    assert isinstance(flow.range(2).to_future().exception(TIMEOUT_S), TooManyItemsError)
    error = FailureError()
    assert flow.error(error).to_future().exception(TIMEOUT_S) is error


def test_a_future_takes_two_items_at_most_and_cancels() -> None:
    publisher = TestPublisher[int](Violation.OVERFLOW | Violation.IGNORED_CANCEL)
    future = Flow(publisher).to_future()
    publisher.assert_requests(2).next(1)
    assert not future.done()
    publisher.next(2).assert_cancelled()
    assert isinstance(future.exception(TIMEOUT_S), TooManyItemsError)


def test_signals_after_the_result_of_a_future_are_dropped(drops: Drops) -> None:
    publisher = TestPublisher[int](
        Violation.OVERFLOW | Violation.IGNORED_CANCEL | Violation.AFTER_TERMINAL
    )
    future = Flow(publisher).to_future()
    publisher.next(1).complete()
    publisher.complete()
    publisher.error(error := FailureError())
    assert future.result(TIMEOUT_S) == 1
    assert drops.take_errors() == [error]


def test_cancelling_a_future_cancels_its_flow() -> None:
    publisher = TestPublisher[int]()
    future = Flow(publisher).to_future()
    assert future.cancel()
    publisher.assert_cancelled()
    with pytest.raises(CancelledError):
        future.result(TIMEOUT_S)


# -- subscribing


def test_subscribe_without_functions_runs_the_flow() -> None:
    seen: list[int] = []
    assert flow.range(3).do_on_next(seen.append).subscribe().disposed
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("wrong", [5, "text", object()])
def test_subscribe_refuses_what_is_neither_subscriber_nor_function(wrong: Any) -> None:
    with pytest.raises(TypeError, match="subscriber or a function"):
        flow.range(3).subscribe(wrong)


def test_a_generator_of_the_user_drives_a_flow_lazily() -> None:
    made = 0

    def items() -> Iterator[int]:
        nonlocal made
        for n in range(10):
            made += 1
            yield n

    iterator = iter(flow.from_iterable(items()).map(str))
    assert made == 0
    assert next(iterator) == "0"
    assert made == 1


@pytest.mark.parametrize("wait", ["list(never)", "never.subscribe(print).wait()"])
def test_a_wait_while_the_interpreter_ends_is_an_error(wait: str) -> None:
    script = f"""
import sys
import flow_core as flow

never = flow.never()

class Late:
    def __del__(self):
        try:
            {wait}
        except flow.FlowError as error:
            print(error)

sys.modules["late"] = Late()
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], timeout=60, check=True, capture_output=True, text=True
    )
    assert ended.stdout.startswith("the interpreter is ending")
