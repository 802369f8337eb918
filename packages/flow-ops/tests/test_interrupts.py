"""Ctrl-C comes while the main thread feeds a flow: no operator stands still after that."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flow_core as flow
import flow_ops as ops
from flow_core import Emitter, Flow
from flow_core.serial import SerialDrain

OPERATORS: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "create": lambda up: up,
    "take_until_other": lambda up: up.pipe(ops.take_until_other(flow.never())),
    "flat_map, scalars": lambda up: up.pipe(ops.flat_map(flow.just)),
    "flat_map, hidden": lambda up: up.pipe(ops.flat_map(lambda n: flow.just(n).hide())),
    "merge_with": lambda up: up.pipe(ops.merge_with(flow.never())),
    "concat_map_eager": lambda up: up.pipe(ops.concat_map_eager(flow.just)),
    "start_with_flows": lambda up: up.pipe(ops.start_with_flows(flow.just(1))),
    "group_by": lambda up: up.pipe(ops.group_by(lambda n: n % 3)).pipe(
        ops.flat_map(lambda group: group)
    ),
    "on_backpressure_latest": lambda up: up.pipe(ops.on_backpressure_latest()),
    "rebatch_requests": lambda up: up.pipe(ops.rebatch_requests(16)),
}
TRIALS = 30


@pytest.fixture
def interrupted() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Have the main thread repeat something until Ctrl-C comes, after some of its CPU time."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def repeat(action: Callable[[], object]) -> None:
        try:
            # Again later: CPython forgets a signal once in a while.
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0002, 0.5)
            while True:
                action()
        except KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    before = signal.signal(signal.SIGVTALRM, interrupt)
    yield repeat
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
@pytest.mark.parametrize("name", OPERATORS)
def test_an_interrupt_takes_the_permit_of_no_operator_away(
    name: str,
    interrupted: Callable[[Callable[[], object]], None],
    monkeypatch: pytest.MonkeyPatch,
    dropped: Any,
) -> None:
    """It came between taking the permit and the `try` behind that in one trial of fourteen."""
    begun: list[SerialDrain] = []
    init = SerialDrain.__init__

    def watched(drain: SerialDrain) -> None:
        init(drain)
        begun.append(drain)

    monkeypatch.setattr(SerialDrain, "__init__", watched)
    lost: list[str] = []
    for _ in range(TRIALS):
        begun.clear()
        emitters: list[Emitter[int]] = []
        made = OPERATORS[name](flow.create(emitters.append, overflow="drop"))
        made.subscribe(lambda _: None, lambda _: None)
        [emitter] = emitters
        kept = len(begun)  # the rest are inner flows: one may not even have begun
        interrupted(lambda emitter=emitter: emitter.next(1))  # type: ignore[misc]
        lost += [type(drain).__name__ for drain in begun[:kept] if 0 not in drain._permit]
        emitter.complete()
    assert lost == []
