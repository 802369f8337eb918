"""What type checkers infer of the methods that other packages execute; never run.

These packages need not be installed for it.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from typing import assert_type

import flow_core as flow
from flow_core import Flow, Processor
from flow_core.backoff import Backoff
from flow_core.clocks import Clock
from flow_core.connectable import Connectable
from flow_core.executors import Executor
from flow_core.parallel import ParallelFlow
from flow_core.results import GroupedFlow, TimeInterval, Timestamped

numbers = flow.range(3)
words = flow.just("a")
halves = flow.just(0.5)


def multicast(one: Processor[int, str]) -> None:
    assert_type(numbers.publish(), Connectable[int])
    assert_type(numbers.publish(prefetch=4).ref_count(2).map(str), Flow[str])
    assert_type(numbers.publish(lambda shared: shared.map(str)), Flow[str])
    assert_type(numbers.publish(lambda shared: shared.map(lambda n: n / 2)), Flow[float])
    assert_type(numbers.publish_value(1), Connectable[int])
    assert_type(numbers.publish_value("none yet").flow, Flow[int | str])
    assert_type(numbers.replay(size=3, ttl=timedelta(minutes=1)), Connectable[int])
    assert_type(numbers.replay(lambda shared: shared.map(lambda n: n / 2), ttl=60), Flow[float])
    assert_type(numbers.share().map(lambda n: n / 2), Flow[float])
    assert_type(numbers.map(str).cache(size=2).map(lambda s: s.upper()), Flow[str])
    assert_type(numbers.multicast(one), Connectable[str])
    assert_type(numbers.multicast(lambda: one).auto_connect().map(len), Flow[int])


def flows_of_items() -> None:
    assert_type(numbers.flat_map(lambda n: flow.just(n / 2)), Flow[float])
    assert_type(numbers.flat_map(flow.just, concurrency=2, delay_error=True), Flow[int])
    assert_type(numbers.concat_map(lambda n: flow.just(str(n))).map(len), Flow[int])
    assert_type(numbers.concat_map_eager(lambda n: flow.just(n / 2)), Flow[float])
    assert_type(numbers.switch_map(lambda n: flow.just(n / 2)), Flow[float])
    assert_type(numbers.map_when(lambda n: flow.just(n / 2)), Flow[float])
    assert_type(numbers.filter_when(lambda n: flow.just(n > 1)), Flow[int])
    assert_type(numbers.expand(lambda n: flow.range(n), depth_first=True), Flow[int])
    assert_type(numbers.switch_on_first(lambda _, all: all.map(lambda n: n / 2)), Flow[float])
    assert_type(flow.just(numbers, numbers).merge_all(), Flow[int])
    assert_type(flow.just(numbers, numbers).concat_all(), Flow[int])
    assert_type(numbers.exhaust_map(lambda n: flow.just(str(n))), Flow[str])
    assert_type(numbers.exhaust_map(lambda n: [n / 2]), Flow[float])
    assert_type(flow.just(words).switch_latest(delay_error=True), Flow[str])
    assert_type(words.map(lambda s: flow.just(s.upper())).merge_all(), Flow[str])


def several() -> None:
    assert_type(numbers.amb(words), Flow[int | str])
    assert_type(numbers.amb(numbers), Flow[int])
    assert_type(numbers.concat(words, delay_error=True), Flow[int | str])
    assert_type(numbers.merge(words, concurrency=2), Flow[int | str])
    assert_type(numbers.merge_sequential(numbers), Flow[int])
    assert_type(numbers.start_with_flows(words), Flow[int | str])
    assert_type(numbers.and_then(words), Flow[str])
    assert_type(numbers.ordered_merge(numbers), Flow[int])
    assert_type(numbers.ordered_merge(words, key=str), Flow[int | str])
    assert_type(numbers.sequence_equal(numbers), Flow[bool])
    assert_type(numbers.sequence_equal(words, equals=lambda n, s: n == len(s)), Flow[bool])
    assert_type(numbers.zip(words), Flow[tuple[int, str]])
    assert_type(numbers.zip(words, halves), Flow[tuple[int, str, float]])
    assert_type(numbers.zip(words).starmap(lambda n, s: s * n), Flow[str])
    assert_type(numbers.zip(words).map(lambda both: both[1].upper()), Flow[str])
    assert_type(numbers.combine_latest(words), Flow[tuple[int, str]])
    assert_type(numbers.combine_latest(halves).starmap(lambda n, h: n * h), Flow[float])
    assert_type(numbers.fork_join(words, halves), Flow[tuple[int, str, float]])
    assert_type(numbers.with_latest_from(words), Flow[tuple[int, str]])
    assert_type(numbers.with_latest_from(words).starmap(lambda n, s: s * n), Flow[str])
    assert_type(numbers.take_until_other(words), Flow[int])
    assert_type(numbers.skip_until_other(words), Flow[int])


def functions() -> None:
    assert_type(flow.amb(numbers, numbers), Flow[int])
    assert_type(flow.concat(numbers, numbers), Flow[int])
    assert_type(flow.merge(numbers, numbers, delay_error=True), Flow[int])
    assert_type(flow.merge([numbers, numbers]), Flow[int])
    assert_type(flow.merge_sequential(numbers, numbers), Flow[int])
    assert_type(flow.ordered_merge(numbers, numbers), Flow[int])
    assert_type(flow.ordered_merge(words, words, key=lambda s: len(s)), Flow[str])
    assert_type(flow.sequence_equal(numbers, words, equals=lambda n, s: n == len(s)), Flow[bool])
    assert_type(flow.zip(numbers, words), Flow[tuple[int, str]])
    assert_type(flow.zip(numbers, words, halves), Flow[tuple[int, str, float]])
    assert_type(flow.zip(numbers, words).starmap(lambda n, s: s * n), Flow[str])
    assert_type(flow.combine_latest(numbers, words), Flow[tuple[int, str]])
    assert_type(flow.combine_latest(numbers, halves).starmap(lambda n, h: n * h), Flow[float])
    assert_type(flow.fork_join(numbers, words), Flow[tuple[int, str]])
    assert_type(flow.interval(0.5, overflow="drop").map(str), Flow[str])
    assert_type(flow.interval_range(1, 3, timedelta(seconds=1)), Flow[int])
    assert_type(flow.timer(1).map(lambda n: n / 2), Flow[float])


def again() -> None:
    assert_type(numbers.repeat(), Flow[int])
    assert_type(numbers.repeat_until(lambda: True), Flow[int])
    assert_type(numbers.repeat_when(lambda ends: ends.take(3)), Flow[int])
    assert_type(numbers.retry(3, when=OSError), Flow[int])
    assert_type(numbers.retry_when(Backoff(3)), Flow[int])
    assert_type(numbers.retry_when(lambda errors: errors.map(lambda e: e.args)), Flow[int])
    assert_type(numbers.on_error_resume(words), Flow[int | str])
    assert_type(numbers.on_error_resume(lambda error: flow.just(str(error))), Flow[int | str])
    assert_type(numbers.switch_if_empty(words), Flow[int | str])


def parts() -> None:
    assert_type(numbers.group_by(str), Flow[GroupedFlow[str, int]])
    assert_type(numbers.group_by(lambda n: n > 1, value=str), Flow[GroupedFlow[bool, str]])
    assert_type(numbers.group_by(str).flat_map(lambda g: g.count()), Flow[int])
    assert_type(
        numbers.group_by_until(str, lambda g: g.map(lambda n: n / 2)), Flow[GroupedFlow[str, int]]
    )
    assert_type(numbers.buffer_boundary(words), Flow[list[int]])
    assert_type(numbers.buffer_toggle(words, lambda s: flow.just(len(s))), Flow[list[int]])
    assert_type(numbers.buffer_when(lambda: words), Flow[list[int]])
    assert_type(numbers.buffer_with_time(0.5), Flow[list[int]])
    assert_type(numbers.batch(3), Flow[list[int]])
    assert_type(numbers.batch(within=0.5).map(lambda some: len(some)), Flow[int])
    assert_type(numbers.session_buffer(0.5, limit=9), Flow[list[int]])
    assert_type(numbers.session_window(0.5), Flow[Flow[int]])
    assert_type(numbers.buffer_with_time_or_count(0.5, 3), Flow[list[int]])
    assert_type(numbers.window_boundary(words), Flow[Flow[int]])
    assert_type(numbers.window_toggle(words, lambda s: flow.just(len(s))), Flow[Flow[int]])
    assert_type(numbers.window_when(lambda: words), Flow[Flow[int]])
    assert_type(numbers.window_with_count(2), Flow[Flow[int]])
    assert_type(numbers.window_with_time(0.5), Flow[Flow[int]])
    assert_type(numbers.window_with_time_or_count(0.5, 3).merge_all(), Flow[int])


def timed(clock: Clock) -> None:
    second = timedelta(seconds=1)
    assert_type(numbers.debounce(0.5, clock=clock), Flow[int])
    assert_type(numbers.debounce(lambda n: flow.just(str(n))), Flow[int])
    assert_type(numbers.delay(second), Flow[int])
    assert_type(numbers.rate_limit(10, second, burst=3), Flow[int])
    assert_type(numbers.retry(3, backoff=second).retry(backoff=Backoff(1)), Flow[int])
    assert_type(numbers.delay_elements(second), Flow[int])
    assert_type(numbers.delay_subscription(words), Flow[int])
    assert_type(numbers.delay_until(lambda n: flow.just(str(n))), Flow[int])
    assert_type(numbers.delay_with_mapper(lambda n: flow.just(str(n))), Flow[int])
    assert_type(numbers.sample(words, emit_last=True), Flow[int])
    assert_type(numbers.throttle_first(second), Flow[int])
    assert_type(numbers.throttle_last(second), Flow[int])
    assert_type(numbers.throttle_latest(second), Flow[int])
    assert_type(numbers.timeout(1, fallback=numbers), Flow[int])
    assert_type(numbers.timestamp(), Flow[Timestamped[int]])
    assert_type(numbers.time_interval(), Flow[TimeInterval[int]])
    assert_type(numbers.take_with_time(second), Flow[int])
    assert_type(numbers.skip_with_time(second), Flow[int])
    assert_type(numbers.take_last_with_time(second), Flow[int])
    assert_type(numbers.skip_last_with_time(second), Flow[int])
    assert_type(numbers.take_until_with_time(1e9), Flow[int])
    assert_type(numbers.skip_until_with_time(1e9), Flow[int])


async def text(n: int) -> str:
    return str(n)


def places(executor: Executor, pool: ProcessPoolExecutor) -> None:
    assert_type(numbers.observe_on(executor, prefetch=4), Flow[int])
    assert_type(numbers.subscribe_on(executor).map(lambda n: n / 2), Flow[float])
    assert_type(numbers.cancel_on(executor), Flow[int])
    assert_type(numbers.map(str).on_processes(pool), Flow[str])
    assert_type(numbers.map_concurrent(text, 1), Flow[str])
    assert_type(numbers.do_concurrent(print, 10), Flow[int])
    assert_type(numbers.map_concurrent(text, 10), Flow[str])
    assert_type(numbers.map_concurrent(lambda n: n / 2, 10), Flow[float])
    assert_type(numbers.map_concurrent(lambda n: asyncio.sleep(1, n / 2), 1), Flow[float])


def rails(executor: Executor) -> None:
    rails = numbers.parallel(2)
    assert_type(numbers.parallel(2, prefetch=4), ParallelFlow[int])
    assert_type(rails.rails, int)
    assert_type(rails.run_on(executor, prefetch=4), ParallelFlow[int])
    assert_type(rails.map(lambda n: n / 2).filter(lambda x: x > 1), ParallelFlow[float])
    assert_type(rails.pairwise(), ParallelFlow[tuple[int, int]])
    assert_type(rails.flat_map(lambda n: flow.just(n / 2)).delay(1), ParallelFlow[float])
    assert_type(rails.group_by(str), ParallelFlow[GroupedFlow[str, int]])
    assert_type(rails.buffer_with_count(3), ParallelFlow[list[int]])
    assert_type(rails.batch(3, within=1).sliding(2), ParallelFlow[list[list[int]]])
    assert_type(rails.window_with_count(3).merge_all(), ParallelFlow[int])
    assert_type(rails.map_concurrent(text, 1).take(3).count(), ParallelFlow[int])
    assert_type(rails.map_concurrent(text, 2), ParallelFlow[str])
    assert_type(rails.do_concurrent(text, 2), ParallelFlow[int])
    assert_type(rails.with_latest_from(words), ParallelFlow[tuple[int, str]])
    assert_type(rails.sum(), ParallelFlow[int])
    assert_type(rails.on_error_resume(words), ParallelFlow[int | str])
    assert_type(rails.reduce(lambda a, b: a + b), Flow[int])
    assert_type(rails.reduce(lambda s, n: s + str(n), ""), ParallelFlow[str])
    assert_type(rails.sorted(key=lambda n: -n), Flow[int])
    assert_type(rails.log().sequential(delay_error=True), Flow[int])


def demand() -> None:
    assert_type(numbers.on_backpressure_buffer(3, on_overflow=lambda n: n + 1), Flow[int])
    assert_type(numbers.on_backpressure_drop(lambda n: n + 1), Flow[int])
    assert_type(numbers.on_backpressure_error(), Flow[int])
    assert_type(numbers.on_backpressure_latest(), Flow[int])
    assert_type(numbers.on_backpressure_reduce(lambda a, b: a + b), Flow[int])
    assert_type(numbers.rebatch_requests(64), Flow[int])


def mistakes(executor: Executor) -> None:
    """Each line is one, and both checkers say so."""
    numbers.flat_map(int)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.flat_map(lambda n: n + 1)  # type: ignore[arg-type, return-value] # pyright: ignore[reportArgumentType]
    numbers.concat_map(lambda n: flow.just(n.upper()))  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownLambdaType, reportUnknownMemberType]
    numbers.concat_all()  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    numbers.merge_all()  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    numbers.switch_latest()  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    numbers.merge(4)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.zip(words).starmap(lambda n: n)  # type: ignore[arg-type, misc] # pyright: ignore[reportArgumentType]
    numbers.combine_latest([1])  # type: ignore[call-overload] # pyright: ignore[reportArgumentType, reportCallIssue]
    numbers.ordered_merge(words, key=lambda a: object())  # type: ignore[arg-type, return-value] # pyright: ignore[reportArgumentType, reportCallIssue]
    flow.just(object()).ordered_merge(numbers)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    numbers.retry("3")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.retry_when(3)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.observe_on("io")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.subscribe_on(executor, prefetch=3)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    numbers.on_backpressure_buffer(3, overflow="oldest")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.group_by("key")  # type: ignore[call-overload] # pyright: ignore[reportArgumentType]
    numbers.buffer_with_time("1 s")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.debounce()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    numbers.map_concurrent(words, 1)  # type: ignore[call-overload] # pyright: ignore[reportArgumentType, reportCallIssue]
    numbers.timeout(1, fallback=words)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.sequence_equal(words, equals=lambda n: True)  # type: ignore[arg-type, misc] # pyright: ignore[reportArgumentType]
    numbers.publish(prefetch="4")  # type: ignore[call-overload] # pyright: ignore[reportArgumentType]
    numbers.publish(4)  # type: ignore[call-overload] # pyright: ignore[reportArgumentType]
    numbers.publish().map(str)  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    numbers.replay(size="all")  # type: ignore[call-overload] # pyright: ignore[reportArgumentType]
    numbers.share(prefetch=None)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.share(4)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    numbers.cache(4)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    numbers.multicast(4)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.publish_value()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    numbers.parallel("2")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.parallel(2).take("1")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.parallel(2).retry()  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    words.parallel(2).sum()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    numbers.parallel(2).merge_all()  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    numbers.parallel(2).flat_map(lambda n: n)  # type: ignore[arg-type, return-value] # pyright: ignore[reportArgumentType]
    flow.zip(numbers, words).starmap(lambda n: n)  # type: ignore[arg-type, misc] # pyright: ignore[reportArgumentType]
    flow.merge(numbers, 4)  # type: ignore[call-overload] # pyright: ignore[reportArgumentType]
    flow.interval("1 s")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    flow.interval(1, overflow="oldest")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    flow.timer()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    flow.sequence_equal(numbers)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
