"""Play a scene: run its flow on a virtual clock, and note what comes when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, final

from typing_extensions import override

import flow_core
from flow_core.demand import UNBOUNDED
from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber, Publisher, Subscription
from flow_testing.marbles import MarbleSignal, MarbleSource, cold
from flow_testing.virtual_clock import VirtualClock

__all__ = ["Line", "Played", "Scene", "play"]

_LONGEST_S: Final = 30.0
"""The most seconds that a scene takes, if it does not say."""


@final
@dataclass(frozen=True, slots=True)
class Scene:
    """A flow to draw, and the sources that it uses.

    Attributes:
        flow: an expression that makes the flow; it uses the inputs by name, and `flow_core` as
            ``flow``.
        inputs: the lines of marbles of the sources, by name, each with one second for a character.
        subscribers: when a subscriber comes, in seconds; one line of the result for each.
        requests: how many items a subscriber requests at a time in seconds; if there are none, it
            requests all at once.
        until: when the picture ends, in seconds; None for a second after the last signal.
    """

    flow: str
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    subscribers: tuple[float, ...] = (0.0,)
    requests: Mapping[float, int] | None = None
    until: float | None = None


@final
@dataclass(slots=True)
class Line:
    """The signals of one subscription.

    Attributes:
        since: when it began, in seconds.
        signals: what came, and when.
        cancelled: when it was cancelled, if it was.
        inner: the lines of the flows that came as items, each with the time when it came.
        requests: how many items were requested, and when.
    """

    since: float
    signals: list[MarbleSignal] = field(default_factory=list[MarbleSignal])
    cancelled: float | None = None
    inner: list[Line] = field(default_factory=list["Line"])
    requests: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])

    @property
    def end(self) -> float | None:
        """The time of the end, or of the cancellation; None if there is none."""
        last = self.signals[-1] if self.signals else None
        return last.time_s if last is not None and last.name != "on_next" else self.cancelled


@final
@dataclass(frozen=True, slots=True)
class Played:
    """The signals of a scene.

    Attributes:
        inputs: the subscriptions to each source.
        results: the signals that each subscriber received.
        until: when the picture ends, in seconds.
    """

    inputs: Mapping[str, tuple[Line, ...]]
    results: tuple[Line, ...]
    until: float


def play(scene: Scene) -> Played:
    """Run the flow of `scene`, and return what happened.

    Raises:
        Exception: what the expression raises.
    """
    with VirtualClock() as clock:
        # Any: a line of marbles does not say what its letters are.
        sources: dict[str, MarbleSource[Any]] = {
            name: cold(line, clock=clock) for name, line in scene.inputs.items()
        }
        names: dict[str, Any] = {name: source.flow for name, source in sources.items()}
        # The scene is part of the program, as a doctest is.
        made: Publisher[Any] = eval(scene.flow, {"flow": flow_core, **names})
        results = [_subscribed(made, at, scene, clock) for at in scene.subscribers]
        clock.advance_to(_LONGEST_S if scene.until is None else scene.until)
        now = clock.now()
        inputs = {name: _input_lines(source, now) for name, source in sources.items()}
    until = scene.until if scene.until is not None else _last(inputs, results)
    return Played(inputs, tuple(results), until)


def _subscribed(made: Publisher[Any], at: float, scene: Scene, clock: VirtualClock) -> Line:
    line = Line(at, requests=list((scene.requests or {}).items()))

    def subscribe() -> None:
        seen = _Seen(line, clock)
        made.subscribe(seen)
        for time, n in line.requests or [(at, UNBOUNDED)]:
            clock.schedule(time - at, partial(seen.request, n))

    clock.schedule(at, subscribe)
    return line


def _input_lines(source: MarbleSource[Any], now: float) -> tuple[Line, ...]:
    """Return the signals that each subscriber of a source could receive until now."""
    lines: list[Line] = []
    for since, cancelled in source.subscriptions:
        signals = [
            signal._replace(time_s=since + signal.time_s)
            for signal in source.signals
            if since + signal.time_s <= (now if cancelled is None else cancelled)
        ]
        lines.append(Line(since, signals, cancelled))
    return tuple(lines)


def _last(inputs: Mapping[str, tuple[Line, ...]], results: list[Line]) -> float:
    lines = [*results, *(line for every in inputs.values() for line in every)]
    lines += [inner for line in results for inner in line.inner]
    times = [signal.time_s for line in lines for signal in line.signals]
    times += [line.cancelled or 0.0 for line in lines]
    return max(times, default=0.0) + 1


@final
class _Seen(CoreSubscriber[Any]):  # Any: the recording does not look at the items
    """Notes the time of each signal, and subscribes to each item that is a flow."""

    __slots__ = ("_clock", "_line", "_subscription")

    def __init__(self, line: Line, clock: VirtualClock) -> None:
        self._line = line
        self._clock = clock
        self._subscription: Subscription | None = None

    def request(self, n: int) -> None:
        """Request `n` items."""
        if self._subscription is not None:
            self._subscription.request(n)

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription

    @override
    def on_next(self, item: Any, /) -> None:
        now = self._clock.now()
        self._line.signals.append(MarbleSignal(now, "on_next", item))
        if isinstance(item, Flow):
            self._follow(item, now)  # pyright: ignore[reportUnknownArgumentType]  # of any items

    def _follow(self, flow: Flow[Any], now: float) -> None:
        inner = Line(now)
        self._line.inner.append(inner)
        seen = _Seen(inner, self._clock)
        flow.subscribe(seen)
        seen.request(UNBOUNDED)

    @override
    def on_error(self, error: BaseException, /) -> None:
        self._line.signals.append(MarbleSignal(self._clock.now(), "on_error", error))

    @override
    def on_complete(self) -> None:
        self._line.signals.append(MarbleSignal(self._clock.now(), "on_complete"))
