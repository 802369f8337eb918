"""One pipeline, or some, for each operator and source that this package registers.

A test that takes ``pipeline`` runs with all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import pytest

import flow_core as flow
import flow_ops as ops
from flow_core import Flow, hooks

HOLDS = 300
"""The most items that one of these operators may hold, with a prefetch of 128, but for some."""


@dataclass(frozen=True)
class Surroundings:
    """What pipelines run on.

    Args:
        executor: where tasks run.
        clock: for the operators of time.
        period_s: how long their times are.
    """

    executor: Any
    clock: Any
    period_s: float = 1


@dataclass(frozen=True)
class Pipeline:
    """An operator or a source at work.

    Args:
        name: as it is registered; after a comma, how it is used.
        make: makes the flow of an upstream.
        holds: the most items of the upstream that may wait in it.
        kinds: words that say what it is good for: "endless" takes all items of a source that knows
            no demand and keeps few; "selective" may drop items or reorder them; "closing" ends
            before its source does; "executor" runs on one; "delayed" needs its clock to go on.
    """

    name: str
    make: Callable[[Flow[Any], Surroundings], Flow[Any]]
    holds: int = HOLDS
    kinds: frozenset[str] = frozenset()

    @property
    def registered(self) -> str:
        return self.name.partition(",")[0]

    def __str__(self) -> str:
        return self.name


def _plain(name: str, operator: Any, holds: int = HOLDS, kinds: str = "") -> Pipeline:
    return Pipeline(name, lambda up, at: up.pipe(operator(at)), holds, frozenset(kinds.split()))


def _itself(made: Any) -> Any:
    return made


def _reraise(error: BaseException) -> Flow[Any]:
    return flow.error(error)


def _halves(up: Flow[Any]) -> tuple[Flow[Any], Flow[Any]]:
    return up, flow.range(10**9)


PIPELINES = (
    _plain("amb_with", lambda at: ops.amb_with(flow.never())),
    _plain("and_then", lambda at: ops.and_then(flow.range(9)), kinds="selective"),
    # Without an end of the buffer, the upstream waits when so many items are in it.
    _plain("buffer_boundary", lambda at: ops.buffer_boundary(flow.never(), max_size=5_000), 5_001),
    _plain(
        "buffer_toggle",
        lambda at: ops.buffer_toggle(flow.just(1), lambda _: flow.never(), max_size=5_000),
        5_001,
        kinds="selective",
    ),
    _plain("buffer_when", lambda at: ops.buffer_when(flow.never, max_size=5_000), 5_001),
    _plain(
        "buffer_with_time",
        lambda at: ops.buffer_with_time(at.period_s, clock=at.clock, max_size=5_000),
        5_001,
    ),
    _plain(
        "buffer_with_time_or_count",
        lambda at: ops.buffer_with_time_or_count(at.period_s, 5, clock=at.clock, max_waiting=20),
    ),
    _plain("cancel_on", lambda at: ops.cancel_on(at.executor), kinds="executor"),
    _plain("concat_map", lambda at: ops.concat_map(flow.just)),
    _plain("concat_map, hidden flows", lambda at: ops.concat_map(lambda n: flow.just(n).hide())),
    _plain("concat_map_eager", lambda at: ops.concat_map_eager(flow.just)),
    _plain(
        "concat_map_eager, hidden flows",
        lambda at: ops.concat_map_eager(lambda n: flow.just(n).hide(), concurrency=16),
    ),
    _plain("concat_with", lambda at: ops.concat_with(flow.empty())),
    _plain("debounce", lambda at: ops.debounce(at.period_s, clock=at.clock), kinds="selective"),
    _plain("delay", lambda at: ops.delay(0, clock=at.clock)),
    _plain("delay_elements", lambda at: ops.delay_elements(0, clock=at.clock), kinds="delayed"),
    _plain("delay_subscription", lambda at: ops.delay_subscription(flow.just("go"))),
    _plain("delay_until", lambda at: ops.delay_until(lambda _: flow.empty())),
    _plain("delay_with_mapper", lambda at: ops.delay_with_mapper(lambda _: flow.empty())),
    # Walks level by level, and the items are the first level.
    _plain("expand", lambda at: ops.expand(lambda _: flow.empty()), 65_536),
    _plain("expand, depth first", lambda at: ops.expand(lambda _: flow.empty(), depth_first=True)),
    _plain("filter_when", lambda at: ops.filter_when(lambda _: flow.just(True))),
    _plain("flat_map", lambda at: ops.flat_map(flow.just)),
    _plain("flat_map, hidden flows", lambda at: ops.flat_map(lambda n: flow.just(n).hide())),
    Pipeline(
        "group_by",
        lambda up, at: up.pipe(ops.group_by(lambda n: int(n) % 3)).pipe(ops.flat_map(_itself)),
        600,
    ),
    _plain("map_when", lambda at: ops.map_when(flow.just)),
    Pipeline("merge_all", lambda up, at: up.map(flow.just).pipe(ops.merge_all())),
    _plain("merge_with", lambda at: ops.merge_with(flow.empty())),
    _plain("observe_on", lambda at: ops.observe_on(at.executor), kinds="executor"),
    _plain(
        "on_backpressure_buffer",
        lambda at: ops.on_backpressure_buffer(100, overflow="drop_oldest"),
        kinds="endless selective",
    ),
    _plain(
        "on_backpressure_drop", lambda at: ops.on_backpressure_drop(), kinds="endless selective"
    ),
    _plain(
        "on_backpressure_error", lambda at: ops.on_backpressure_error(), kinds="closing selective"
    ),
    _plain(
        "on_backpressure_latest", lambda at: ops.on_backpressure_latest(), kinds="endless selective"
    ),
    _plain(
        "on_backpressure_reduce",
        lambda at: ops.on_backpressure_reduce(lambda _, b: b),
        kinds="endless selective",
    ),
    _plain("on_error_resume", lambda at: ops.on_error_resume(_reraise)),
    Pipeline("parallel", lambda up, at: up.pipe(ops.parallel(2)).sequential(), 600, frozenset()),
    Pipeline(
        "parallel, run_on",
        lambda up, at: up.pipe(ops.parallel(2)).run_on(at.executor).sequential(),
        900,
        frozenset(("executor", "selective")),
    ),
    _plain("rebatch_requests", lambda at: ops.rebatch_requests(64)),
    _plain("repeat", lambda at: ops.repeat(1)),
    _plain("repeat_until", lambda at: ops.repeat_until(lambda: True)),
    _plain("repeat_when", lambda at: ops.repeat_when(lambda runs: runs.take(1))),
    _plain("retry", lambda at: ops.retry(2, when=KeyError)),
    _plain("retry_when", lambda at: ops.retry_when(ops.Backoff(1, when=KeyError))),
    _plain("sample", lambda at: ops.sample(at.period_s, clock=at.clock), kinds="endless selective"),
    _plain("sample, by a flow", lambda at: ops.sample(flow.never()), kinds="endless selective"),
    _plain("skip_last_with_time", lambda at: ops.skip_last_with_time(0, clock=at.clock)),
    _plain("skip_until_other", lambda at: ops.skip_until_other(flow.just("go"))),
    _plain(
        "skip_until_with_time",
        lambda at: ops.skip_until_with_time(at.period_s, clock=at.clock),
        kinds="selective",
    ),
    _plain(
        "skip_with_time",
        lambda at: ops.skip_with_time(at.period_s, clock=at.clock),
        kinds="selective",
    ),
    _plain("start_with_flows", lambda at: ops.start_with_flows(flow.empty())),
    _plain("subscribe_on", lambda at: ops.subscribe_on(at.executor), kinds="executor"),
    _plain("switch_if_empty", lambda at: ops.switch_if_empty(flow.empty())),
    Pipeline(
        "switch_latest",
        lambda up, at: up.map(flow.just).pipe(ops.switch_latest()),
        HOLDS,
        frozenset(("endless", "selective")),
    ),
    _plain("switch_map", lambda at: ops.switch_map(flow.just), kinds="endless selective"),
    _plain("switch_on_first", lambda at: ops.switch_on_first(lambda _, up: up)),
    _plain(
        "take_last_with_time",
        lambda at: ops.take_last_with_time(at.period_s, max_items=10, clock=at.clock),
        kinds="endless selective",
    ),
    _plain("take_until_other", lambda at: ops.take_until_other(flow.never())),
    _plain(
        "take_until_with_time", lambda at: ops.take_until_with_time(at.period_s, clock=at.clock)
    ),
    _plain("take_with_time", lambda at: ops.take_with_time(at.period_s, clock=at.clock)),
    _plain(
        "throttle_first",
        lambda at: ops.throttle_first(at.period_s, clock=at.clock),
        kinds="selective",
    ),
    _plain("throttle_last", lambda at: ops.throttle_last(flow.never()), kinds="endless selective"),
    _plain(
        "throttle_latest",
        lambda at: ops.throttle_latest(at.period_s, clock=at.clock),
        kinds="endless selective",
    ),
    Pipeline(
        "time_interval",
        lambda up, at: up.pipe(ops.time_interval(clock=at.clock)).map(lambda timed: timed.item),
    ),
    _plain("timeout", lambda at: ops.timeout(10**6, clock=at.clock)),
    _plain("timeout, by flows", lambda at: ops.timeout(selector=lambda _: flow.never())),
    Pipeline(
        "timestamp",
        lambda up, at: up.pipe(ops.timestamp(clock=at.clock)).map(lambda timed: timed.item),
    ),
    Pipeline(
        "window_boundary",
        lambda up, at: up.pipe(ops.window_boundary(flow.never())).pipe(ops.concat_map(_itself)),
    ),
    Pipeline(
        "window_toggle",
        lambda up, at: up.pipe(ops.window_toggle(flow.just(1), lambda _: flow.never())).pipe(
            ops.concat_map(_itself)
        ),
    ),
    Pipeline(
        "window_when",
        lambda up, at: up.pipe(ops.window_when(flow.never)).pipe(ops.concat_map(_itself)),
    ),
    Pipeline(
        "window_with_count",
        lambda up, at: up.pipe(ops.window_with_count(3)).pipe(ops.concat_map(_itself)),
    ),
    Pipeline(
        "window_with_count, overlapping",
        lambda up, at: up.pipe(ops.window_with_count(3, 2)).pipe(ops.concat_map(_itself)),
    ),
    Pipeline(
        "window_with_time",
        lambda up, at: up.pipe(ops.window_with_time(at.period_s, clock=at.clock)).pipe(
            ops.concat_map(_itself)
        ),
    ),
    Pipeline(
        "window_with_time_or_count",
        lambda up, at: up.pipe(ops.window_with_time_or_count(at.period_s, 3, clock=at.clock)).pipe(
            ops.concat_map(_itself)
        ),
    ),
    _plain("with_latest_from", lambda at: ops.with_latest_from(flow.just("x"))),
    _plain("zip_with", lambda at: ops.zip_with(flow.range(10**9))),
    _plain("zip_with, a hidden flow", lambda at: ops.zip_with(flow.range(10**9).hide())),
    # -- sources, of an upstream
    Pipeline("amb", lambda up, at: ops.amb(flow.never(), up)),
    Pipeline(
        "combine_latest",
        lambda up, at: ops.combine_latest(flow.just("x"), up),
    ),
    Pipeline("concat", lambda up, at: ops.concat(flow.empty(), up)),
    Pipeline("concat, hidden flows", lambda up, at: ops.concat(flow.empty().hide(), up.hide())),
    Pipeline(
        "fork_join",
        lambda up, at: ops.fork_join(flow.just("x"), up),
        300,
        frozenset(("endless", "selective")),
    ),
    Pipeline("merge", lambda up, at: ops.merge(flow.empty(), up)),
    Pipeline("merge_sequential", lambda up, at: ops.merge_sequential(flow.empty(), up)),
    Pipeline(
        "ordered_merge", lambda up, at: ops.ordered_merge(up.map(int), flow.range(10**9, 10**9 + 1))
    ),
    Pipeline(
        "ordered_merge, on an executor",
        lambda up, at: ops.ordered_merge(up.map(int), flow.empty(), executor=at.executor),
        HOLDS,
        frozenset(("executor",)),
    ),
    Pipeline(
        "sequence_equal",
        lambda up, at: ops.sequence_equal(up.map(int), flow.range(10**9).hide()),
        HOLDS,
        frozenset(("selective",)),
    ),
    Pipeline("zip", lambda up, at: ops.zip(up, flow.range(10**9))),
    Pipeline("zip, hidden flows", lambda up, at: ops.zip(up.hide(), flow.range(10**9).hide())),
)
"""What the tests of this folder run with."""

NO_PIPELINE = {
    "interval": "has no upstream; see test_interval*",
    "interval_range": "has no upstream; see test_interval*",
    "map_async": "needs a running event loop; see its own tests",
    "on_processes": "needs a pool of processes; see its own tests",
    "timer": "has no upstream",
}
"""What is registered and has no pipeline here, with the reason."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes ``pipeline`` with each of them."""
    if "pipeline" in metafunc.fixturenames:
        wanted: set[str] = set(getattr(metafunc.function, "kinds", ()))
        chosen = [each for each in PIPELINES if wanted <= each.kinds]
        metafunc.parametrize("pipeline", chosen, ids=str)


@pytest.fixture
def pipelines() -> tuple[Pipeline, ...]:
    """All of them."""
    return PIPELINES


@pytest.fixture
def no_pipeline() -> dict[str, str]:
    """What has none."""
    return NO_PIPELINE


@pytest.fixture
def surroundings() -> type[Surroundings]:
    """What pipelines run on."""
    return Surroundings


class Refusing:
    """An executor that runs tasks inline, until it is shut down."""

    def __init__(self) -> None:
        self.open = True
        self.tasks = 0

    def submit(self, task: Callable[[], object]) -> Future[Any]:
        if not self.open:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self.tasks += 1
        future: Future[Any] = Future()
        task()
        future.set_result(None)
        return future


@pytest.fixture
def refusing() -> Refusing:
    """An executor that can be shut down."""
    return Refusing()


@pytest.fixture
def dropped_unseen(dropped: object) -> Iterator[None]:
    """For tests that are about something else than what is dropped, and must not keep it."""
    with (
        hooks.dropped_errors.scoped("test", lambda _: None),
        hooks.dropped_items.scoped("test", lambda _: None),
    ):
        yield
