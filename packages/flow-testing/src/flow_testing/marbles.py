"""Marble diagrams: signals over time as a line of text, for sources and for expectations.

Each character stands for a signal, and takes up one frame of time:

==========  =================================================================================
character   meaning
==========  =================================================================================
``-``       nothing happens
``a`` …     an item: from `values`, or else the character itself (a digit is an int)
``|``       on_complete
``#``       on_error
``(ab|)``   signals at the same time, that of ``(``; the group takes up the frames of its text
``(a,bc)``  with commas, items in a group may have longer names
``^``       the subscriber subscribes; for a hot source, time 0
``!``       the subscriber cancels
space       nothing, and takes up no time: to align lines
==========  =================================================================================

The characters mean what they mean in ReactiveX libraries. Where those libraries differ, the
following holds: outside of a group, one character is one item; and digits are ints.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, cast, final, overload

from typing_extensions import override

from flow_core import hooks
from flow_core.clocks import Clock
from flow_core.demand import UNBOUNDED, add_demand, bad_request
from flow_core.errors import FlowError, MissingBackpressureError
from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber, Disposable, Publisher, Subscriber, Subscription
from flow_core.serial import SerialDrain
from flow_core.subscribers import core_subscriber
from flow_testing.subscriber import TestSubscriber
from flow_testing.virtual_clock import VirtualClock

__all__ = [
    "MarbleError",
    "MarbleSignal",
    "MarbleSource",
    "Marbles",
    "assert_marbles",
    "cold",
    "hot",
    "parse_marbles",
    "record_signals",
    "to_marbles",
]

T = TypeVar("T")

# Any: without values, the reader decides what a letter stands for.
_Values = Mapping[str, Any] | Mapping[int, Any]

MarbleOverflow = Literal["buffer", "drop", "error"]
"""The ways in which a source can treat an item that is due and not requested."""

_SPECIAL: Final = frozenset("-|#()^!, ")
_NANOS: Final = 1_000_000_000


class MarbleError(FlowError):
    """The error that ``#`` stands for if no other error is given."""


class MarbleSignal(NamedTuple):
    """One signal and its time."""

    time_s: float
    """Seconds since the subscription, or since ``^``."""
    name: Literal["on_next", "on_error", "on_complete"]
    """The name of the subscriber's method that is called."""
    value: object = None
    """The item or the error."""

    def __str__(self) -> str:
        return f"{self.name}({'' if self.value is None else repr(self.value)})"


class Marbles(NamedTuple):
    """The meaning of a line of marbles."""

    signals: tuple[MarbleSignal, ...]
    """The signals in order; their times count from the start of the line, or from ``^`` if there is
    one."""
    subscribed_s: float | None
    """The time of ``^``, in seconds since the start of the line; None without ``^``."""
    cancelled_s: float | None
    """The time of ``!``, in seconds since the start of the line; None without ``!``."""


def parse_marbles(
    marbles: str,
    values: _Values | None = None,
    *,
    error: BaseException | None = None,
    frame_s: float = 1.0,
) -> Marbles:
    """Read a line of marbles, and return its signals.

    >>> for signal in parse_marbles("-a-(b|)", {"a": 10}).signals:
    ...     print(signal.time_s, signal)
    1.0 on_next(10)
    3.0 on_next('b')
    3.0 on_complete()

    Args:
        marbles: the line; the module's documentation explains the characters.
        values: the items by character, or by name for groups with commas.
        error: the error that ``#`` stands for; by default a new `MarbleError`.
        frame_s: seconds per character.

    Raises:
        ValueError: if the line is invalid; the message says where.
    """
    if not frame_s > 0:
        raise ValueError(f"a frame must take more than 0 s, not {frame_s}")
    signals: list[tuple[int, str]] = []
    marks: dict[str, int] = {}
    frame, group, text = 0, -1, marbles
    for position, character in enumerate(text):
        if character == " ":
            continue
        time = frame if group < 0 else group
        if character == "(":
            if group >= 0:
                raise _unreadable(text, position, "a group within a group")
            group = frame
        elif character == ")":
            if group < 0:
                raise _unreadable(text, position, "a group that was not opened ends")
            group = -1
        elif character in "^!":
            if character in marks:
                raise _unreadable(text, position, f"a second {character}")
            marks[character] = time
        elif character == ",":
            if group < 0:
                raise _unreadable(text, position, "a comma separates items of a group only")
            signals.append((time, character))
        elif character == "-":
            if group >= 0:
                raise _unreadable(text, position, "no time passes within a group")
        else:
            signals.append((time, character))
        frame += 1
    if group >= 0:
        raise _unreadable(text, len(text) - 1, "a group has no end")
    failure = error if error is not None else MarbleError("#")
    start = marks.get("^", 0)
    read: list[MarbleSignal] = []
    for time, name in _named(signals):
        if read and read[-1].name != "on_next":
            raise ValueError(f"{marbles!r}: nothing may follow | or #")
        at_s = _seconds(time - start, frame_s)
        if name == "|":
            read.append(MarbleSignal(at_s, "on_complete"))
        elif name == "#":
            read.append(MarbleSignal(at_s, "on_error", failure))
        else:
            read.append(MarbleSignal(at_s, "on_next", _value(name, values)))
    return Marbles(
        tuple(read),
        _seconds(marks["^"], frame_s) if "^" in marks else None,
        _seconds(marks["!"], frame_s) if "!" in marks else None,
    )


def _unreadable(text: str, position: int, why: str) -> ValueError:
    return ValueError(f"these marbles are not valid: {why}\n  {text}\n  {' ' * position}^")


def _seconds(frames: int, frame_s: float) -> float:
    return round(frames * frame_s * _NANOS) / _NANOS


def _named(signals: list[tuple[int, str]]) -> Iterable[tuple[int, str]]:
    """Return the signals with their names; commas separate the names in a group."""
    with_commas = {time for time, character in signals if character == ","}
    name = ""
    for index, (time, character) in enumerate(signals):
        if time not in with_commas:
            yield time, character
            continue
        if character not in ",|#":
            name += character
            following = signals[index + 1] if index + 1 < len(signals) else None
            if following is not None and following[0] == time and following[1] not in ",|#":
                continue
        if name:
            yield time, name
            name = ""
        if character in "|#":
            yield time, character


def _value(name: str, values: _Values | None) -> object:
    number: int | str = int(name) if name.isdecimal() else name
    table: Mapping[Any, Any] = values or {}  # Any: keys of either kind
    found = table.get(name, table.get(number, number))
    if found is None:
        raise ValueError(f"{name!r} stands for None, which is not an item (§2.13)")
    return found


# -- sources


@final
class MarbleSource(Publisher[T], Generic[T]):
    """A publisher made of marbles by `cold` or `hot`.

    Demand: with unbounded demand, each item comes at its time. If an item is due and not requested,
    `overflow` decides: "buffer" keeps it, and the terminal, until it is requested; "drop" passes it
    to the dropped-items hook; "error" fails the flow with `MissingBackpressureError`.
    Thread: that of the clock; for items that were kept, the requester's. Fusion: none.

    Args:
        signals: the signals to send.
        clock: the clock that times them.
        hot: whether all subscribers share one time line, which begins when the source is made.
        overflow: what happens to an item that is not requested in time.
        marbles: the line, for messages.
    """

    __slots__ = (
        "_clock",
        "_hot",
        "_live",
        "_marbles",
        "_overflow",
        "_start_s",
        "signals",
        "subscriptions",
    )

    def __init__(
        self,
        signals: tuple[MarbleSignal, ...],
        clock: Clock,
        hot: bool,
        overflow: MarbleOverflow,
        marbles: str,
    ) -> None:
        self.signals: Final = signals
        """The signals to send, each with its time."""
        self._clock = clock
        self._hot = hot
        self._overflow: MarbleOverflow = overflow
        self._marbles = marbles
        self._start_s = clock.now()
        self._live: dict[_MarbleSubscription[T], None] = {}
        """The subscribers of a hot source."""
        self.subscriptions: list[tuple[float, float | None]] = []
        """When the source was subscribed to and cancelled, in seconds since it was made; None if it
        was not cancelled. A flow that has ended is not cancelled."""
        if hot:
            for signal in signals:
                if signal.time_s >= 0:
                    clock.schedule(signal.time_s, partial(self._send, signal))

    @property
    def flow(self) -> Flow[T]:
        """Return this source with the operators of a `Flow`."""
        return Flow(self)

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        downstream = core_subscriber(subscriber)
        self.subscriptions.append((self._passed_s(), None))
        place = len(self.subscriptions) - 1
        line = _MarbleSubscription(self, place, downstream, self._overflow)
        if self._hot:
            self._live[line] = None
            line.start(())
        else:
            line.start(self.signals)

    def assert_subscriptions(self, *marbles: str, frame_s: float = 1.0) -> None:
        """Assert that these lines show exactly when it was subscribed to and cancelled, in order.

        >>> clock = VirtualClock()
        >>> source = cold("-a-b-c|", clock=clock)
        >>> to_marbles(source.flow.take(2), clock=clock, subscription="--^")
        '---a-(b|)'
        >>> source.assert_subscriptions("--^--!")

        Args:
            marbles: one line per subscriber: ``^`` where it subscribes, and ``!`` where it cancels,
                if it does.
            frame_s: seconds per character.
        """
        expected = [
            (parsed.subscribed_s, parsed.cancelled_s)
            for parsed in (parse_marbles(line, frame_s=frame_s) for line in marbles)
        ]
        if self.subscriptions != expected:
            raise AssertionError(
                f"{self!r}: expected the subscriptions (from, cancelled at) in s {expected}, "
                f"got {self.subscriptions}"
            )

    def _send(self, signal: MarbleSignal) -> None:
        for line in list(self._live):
            line.take(signal)

    def _left(self, line: _MarbleSubscription[T]) -> None:
        self._live.pop(line, None)

    def _cancelled(self, place: int) -> None:
        since_s, _ = self.subscriptions[place]
        self.subscriptions[place] = (since_s, self._passed_s())

    def _passed_s(self) -> float:
        return _rounded(self._clock.now() - self._start_s)

    def __repr__(self) -> str:
        return f"{'hot' if self._hot else 'cold'}({self._marbles!r})"


@final
class _MarbleSubscription(SerialDrain, Subscription, Generic[T]):
    __slots__ = (
        "_downstream",
        "_due",
        "_error",
        "_overflow",
        "_place",
        "_requested",
        "_sent",
        "_source",
        "_timers",
    )

    def __init__(
        self,
        source: MarbleSource[T],
        place: int,
        downstream: CoreSubscriber[T],
        overflow: MarbleOverflow,
    ) -> None:
        super().__init__()
        self._source = source
        self._place = place
        self._downstream: CoreSubscriber[T] | None = downstream
        self._overflow = overflow
        self._timers: list[Disposable] = []
        self._due: deque[MarbleSignal] = deque()
        self._requested = 0
        self._sent = 0
        self._error: BaseException | None = None

    def start(self, signals: tuple[MarbleSignal, ...]) -> None:
        """Hand this over as the subscription; time counts from then on."""
        downstream = self._downstream
        # We hold the permit, so that no signal comes before on_subscribe has returned (§1.9).
        if downstream is None or not self.try_enter():
            return
        try:
            downstream.on_subscribe(self)
        except BaseException:
            self._release()
            self.leave()
            raise
        clock = self._source._clock
        for signal in signals if self._downstream is not None else ():
            self._timers.append(clock.schedule(signal.time_s, partial(self.take, signal)))
        self.run_entered()

    def take(self, signal: MarbleSignal) -> None:
        """Send a signal at its time, or keep it if it is not requested."""
        self._due.append(signal)
        self.signal()

    @override
    def request(self, n: int, /) -> None:
        bad = bad_request(n)
        if bad is None:
            self._requested = add_demand(self._requested, n)
        else:
            self._error = bad
        self.signal()

    @override
    def cancel(self) -> None:
        if self._downstream is not None:
            self._source._cancelled(self._place)
        self._release()

    @override
    def drain(self) -> None:
        due = self._due
        while (downstream := self._downstream) is not None:
            error = self._error
            if error is not None:
                self._release()
                downstream.on_error(error)
                return
            if not due:
                return
            signal = due[0]
            if signal.name == "on_complete":
                self._release()
                downstream.on_complete()
            elif signal.name == "on_error":
                # Only an error is parsed from #.
                self._error = cast("BaseException", signal.value)
            elif self._sent < self._requested:
                self._sent += 1
                # The marbles have items of one type; their signals hold any object.
                downstream.on_next(cast("T", due.popleft().value))
            elif self._overflow == "buffer":
                return
            else:
                hooks.drop_item(due.popleft().value)
                if self._overflow == "error":
                    self._error = MissingBackpressureError(
                        f"{self._source!r} has an item at {signal.time_s} s that was not "
                        f'requested; request earlier, or make it with overflow="buffer"'
                    )
        self._discard()

    def _release(self) -> None:
        """Drop the references to the subscriber (§3.13) and to the pending signals."""
        self._downstream = None
        self._error = None
        self._source._left(self)
        timers, self._timers = self._timers, []
        for timer in timers:
            timer.dispose()
        self._discard()

    def _discard(self) -> None:
        while self._due:
            signal = self._due.popleft()
            if signal.name == "on_next":
                hooks.drop_item(signal.value)


def _rounded(seconds: float) -> float:
    return round(seconds * _NANOS) / _NANOS


# Any: without values, the reader decides what a letter stands for.
@overload
def cold(
    marbles: str,
    values: Mapping[str, T] | Mapping[int, T],
    *,
    clock: Clock,
    error: BaseException | None = None,
    frame_s: float = 1.0,
    overflow: MarbleOverflow = "buffer",
) -> MarbleSource[T]: ...
@overload
def cold(
    marbles: str,
    values: None = None,
    *,
    clock: Clock,
    error: BaseException | None = None,
    frame_s: float = 1.0,
    overflow: MarbleOverflow = "buffer",
) -> MarbleSource[Any]: ...
def cold(
    marbles: str,
    values: _Values | None = None,
    *,
    clock: Clock,
    error: BaseException | None = None,
    frame_s: float = 1.0,
    overflow: MarbleOverflow = "buffer",
) -> MarbleSource[Any]:
    """Return a source whose time starts from the beginning for each subscriber.

    >>> clock = VirtualClock()
    >>> subscriber = TestSubscriber[str]()
    >>> cold("-a-b|", clock=clock).flow.map(str.upper).subscribe(subscriber)
    >>> clock.advance_by(4)
    >>> subscriber.assert_result("A", "B")
    TestSubscriber[on_subscribe() on_next('A') on_next('B') on_complete()]

    Args:
        marbles: the line to send. Nothing is sent within ``subscribe``: the clock has to advance
            first, if only by 0.
        values: the items by character.
        clock: the clock that times the signals, usually a `VirtualClock`.
        error: the error that ``#`` stands for; by default a new `MarbleError`.
        frame_s: seconds per character.
        overflow: what happens to items that were not requested: "buffer" (they come late), "drop"
            (they go to the dropped-items hook) or "error" (`MissingBackpressureError`).

    Returns:
        A publisher; its property `flow` has the operators of a `Flow`.

    Raises:
        ValueError: if the marbles are invalid, or have ``^`` or ``!``.
    """
    parsed = parse_marbles(marbles, values, error=error, frame_s=frame_s)
    if parsed.subscribed_s is not None or parsed.cancelled_s is not None:
        raise ValueError(f"cold({marbles!r}): its time starts when it is subscribed: no ^, no !")
    return MarbleSource(parsed.signals, clock, False, overflow, marbles)


@overload
def hot(
    marbles: str,
    values: Mapping[str, T] | Mapping[int, T],
    *,
    clock: Clock,
    error: BaseException | None = None,
    frame_s: float = 1.0,
    overflow: MarbleOverflow = "error",
) -> MarbleSource[T]: ...
@overload
def hot(
    marbles: str,
    values: None = None,
    *,
    clock: Clock,
    error: BaseException | None = None,
    frame_s: float = 1.0,
    overflow: MarbleOverflow = "error",
) -> MarbleSource[Any]: ...
def hot(
    marbles: str,
    values: _Values | None = None,
    *,
    clock: Clock,
    error: BaseException | None = None,
    frame_s: float = 1.0,
    overflow: MarbleOverflow = "error",
) -> MarbleSource[Any]:
    """Return a source that runs from now on, whether it has subscribers or not.

    >>> clock = VirtualClock()
    >>> source = hot("-a-b-c|", clock=clock)
    >>> clock.advance_by(2)
    >>> to_marbles(source.flow, clock=clock)
    '-b-c|'

    A subscriber gets the signals that are due after it has subscribed. A subscriber that comes
    after the terminal gets nothing, as from a real source of events that has gone silent.

    Args:
        marbles: the line to send. Its first frame is now; if it has a ``^``, the frame of ``^`` is
            now, and no subscriber gets what is before it.
        values: see `cold`.
        clock: see `cold`.
        error: see `cold`.
        frame_s: see `cold`.
        overflow: see `cold`; by default, an event that is not requested in time is an error.

    Returns:
        A publisher; its property `flow` has the operators of a `Flow`.

    Raises:
        ValueError: if the marbles are invalid, or have ``!``.
    """
    parsed = parse_marbles(marbles, values, error=error, frame_s=frame_s)
    if parsed.cancelled_s is not None:
        raise ValueError(f"hot({marbles!r}): a source does not cancel: no !")
    return MarbleSource(parsed.signals, clock, True, overflow, marbles)


# -- recordings


def record_signals(
    publisher: Publisher[Any],  # Any: the recording does not look at the items
    *,
    clock: VirtualClock,
    subscription: str = "^",
    frame_s: float = 1.0,
    request: int = UNBOUNDED,
) -> list[MarbleSignal]:
    """Subscribe, let time pass until nothing is pending, and return the signals with their times.

    Args:
        publisher: the publisher to subscribe to.
        clock: the clock to advance.
        subscription: a line that says when to subscribe, ``^``, and when to cancel, ``!``; needed
            for a flow without an end.
        frame_s: seconds per character.
        request: how many items to request, all at once.

    Returns:
        The signals, with times in seconds since this function was called.

    Raises:
        AssertionError: if a rule of the protocol was broken.
        ValueError: if `subscription` has any other character.
    """
    plan = parse_marbles(subscription, frame_s=frame_s)
    if plan.signals or plan.subscribed_s is None:
        raise ValueError(f"a subscription has ^ and perhaps !, and no more: {subscription!r}")
    start_s = clock.now()
    subscriber = TestSubscriber[Any](request)
    stamping = _Stamping(subscriber, clock)
    clock.schedule(plan.subscribed_s, lambda: publisher.subscribe(stamping))
    if plan.cancelled_s is None:
        clock.run()
    else:
        clock.schedule(plan.cancelled_s, subscriber.cancel)
        clock.advance_to(_rounded(start_s + plan.cancelled_s))
        subscriber.assert_silent_after_cancel()
    subscriber.assert_rules_kept()
    return stamping.signals


@final
class _Stamping(CoreSubscriber[Any]):  # Any: the recording does not look at the items
    """Notes the time of each signal, and passes it on to a subscriber that checks the rules."""

    __slots__ = ("_clock", "_start_s", "_subscriber", "signals")

    def __init__(self, subscriber: TestSubscriber[Any], clock: Clock) -> None:
        self._subscriber = subscriber
        self._clock = clock
        self._start_s = clock.now()
        self.signals: list[MarbleSignal] = []

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscriber.on_subscribe(subscription)

    @override
    def on_next(self, item: object, /) -> None:
        self.signals.append(MarbleSignal(self._time_s(), "on_next", item))
        self._subscriber.on_next(item)

    @override
    def on_error(self, error: BaseException, /) -> None:
        self.signals.append(MarbleSignal(self._time_s(), "on_error", error))
        self._subscriber.on_error(error)

    @override
    def on_complete(self) -> None:
        self.signals.append(MarbleSignal(self._time_s(), "on_complete"))
        self._subscriber.on_complete()

    def _time_s(self) -> float:
        return _rounded(self._clock.now() - self._start_s)


@overload
def to_marbles(
    recorded: Iterable[MarbleSignal], values: _Values | None = None, *, frame_s: float = 1.0
) -> str: ...
@overload
def to_marbles(
    recorded: Publisher[Any],  # Any: see record_signals
    values: _Values | None = None,
    *,
    clock: VirtualClock,
    subscription: str = "^",
    frame_s: float = 1.0,
    request: int = UNBOUNDED,
) -> str: ...
def to_marbles(
    recorded: Publisher[Any] | Iterable[MarbleSignal],
    values: _Values | None = None,
    *,
    clock: VirtualClock | None = None,
    subscription: str = "^",
    frame_s: float = 1.0,
    request: int = UNBOUNDED,
) -> str:
    """Draw recorded signals as a line; if a publisher is given, record its signals first.

    >>> clock = VirtualClock()
    >>> to_marbles(cold("-1-2-(3|)", clock=clock).flow.map(lambda n: n + 1), clock=clock)
    '-2-3-(4|)'

    Args:
        recorded: the signals, as `record_signals` returns them; or a publisher.
        values: the items by character; an item without a character is drawn as ``?``.
        clock: only for a publisher; see `record_signals`.
        subscription: only for a publisher; see `record_signals`.
        frame_s: seconds per character.
        request: only for a publisher; see `record_signals`.

    Returns:
        The line; it ends with the last signal.

    Raises:
        ValueError: if the signals cannot be drawn, because they come between frames or too close to
            a group. A smaller `frame_s` helps.
    """
    if clock is not None:
        publisher = cast("Publisher[Any]", recorded)  # as the overloads have it
        recorded = record_signals(
            publisher, clock=clock, subscription=subscription, frame_s=frame_s, request=request
        )
    by_frame: dict[int, list[str]] = {}
    for signal in cast("Iterable[MarbleSignal]", recorded):
        frame = round(signal.time_s / frame_s)
        if _seconds(frame, frame_s) != _rounded(signal.time_s):
            raise ValueError(f"{signal} at {signal.time_s} s is not at a frame of {frame_s} s")
        by_frame.setdefault(frame, []).append(_character(signal, values or {}))
    line = ""
    for frame, characters in by_frame.items():
        if frame < len(line):
            raise ValueError(
                f"{''.join(characters)} at frame {frame} is too close to draw behind {line}"
            )
        together = "".join(characters)
        line += "-" * (frame - len(line)) + (together if len(together) == 1 else f"({together})")
    return line


def _character(signal: MarbleSignal, values: Mapping[Any, Any]) -> str:  # Any: see _value
    if signal.name == "on_complete":
        return "|"
    if signal.name == "on_error":
        return "#"
    item = signal.value
    for name, value in values.items():
        if len(str(name)) == 1 and _equal(value, item):
            return str(name)
    text = str(item) if isinstance(item, (str, int)) and not isinstance(item, bool) else ""
    return text if len(text) == 1 and text not in _SPECIAL else "?"


def _equal(left: object, right: object) -> bool:
    """Return whether the two are one object or equal.

    An answer that is not a bool counts as False.
    """
    return left is right or (left == right) is True


def assert_marbles(
    publisher: Publisher[Any],  # Any: see record_signals
    expected: str,
    values: _Values | None = None,
    *,
    clock: VirtualClock,
    error: BaseException | type[BaseException] | None = None,
    subscription: str = "^",
    frame_s: float = 1.0,
    request: int = UNBOUNDED,
) -> None:
    """Assert that a publisher sends exactly the signals of the marbles, at these times.

    >>> clock = VirtualClock()
    >>> source = cold("-a-b-c--|", clock=clock)
    >>> assert_marbles(source.flow.skip(1), "---b-c--|", clock=clock)
    >>> assert_marbles(source.flow.take(1), "-a|", clock=clock)
    Traceback (most recent call last):
    ...
    AssertionError: the marbles differ
      expected  -a|
      got       -(a|)
      at 1.0 s: got on_complete() too much
      at 2.0 s: expected on_complete()

    Args:
        publisher: the publisher to subscribe to.
        expected: the line of marbles; its first frame is now.
        values: the items by character. Items are compared by ``==``.
        clock: the clock, which is advanced until nothing is pending, or `subscription` cancels.
        error: the error that ``#`` stands for: the object itself, or its class; None for any error.
        subscription: a line that says when to subscribe, ``^``, and when to cancel, ``!``.
        frame_s: seconds per character.
        request: how many items to request, all at once.

    Raises:
        AssertionError: if a signal or a time differs, or if a rule of the protocol was broken.
        ValueError: if a line of marbles is invalid.
    """
    wanted = parse_marbles(expected, values, frame_s=frame_s).signals
    got = record_signals(
        publisher, clock=clock, subscription=subscription, frame_s=frame_s, request=request
    )
    missing = list(wanted)
    surplus: list[MarbleSignal] = []
    for signal in got:
        index = next((i for i, want in enumerate(missing) if _same(want, signal, error)), None)
        if index is None:
            surplus.append(signal)
        else:
            del missing[index]
    in_order = len(wanted) == len(got) and all(map(partial(_same, error=error), wanted, got))
    if in_order:
        return
    lines = ["the marbles differ", f"  expected  {expected}"]
    try:
        lines.append(f"  got       {to_marbles(got, values, frame_s=frame_s)}")
    except ValueError:
        pass  # signals between frames cannot be drawn; the list has them
    differences = [(s.time_s, 0, f"  at {s.time_s} s: expected {s}") for s in missing]
    differences += [(s.time_s, 1, f"  at {s.time_s} s: got {s} too much") for s in surplus]
    lines += [text for _, _, text in sorted(differences)]
    if not differences:
        lines.append(f"  all came, but in the order {' '.join(map(str, got))}")
    failure = next((s.value for s in surplus if isinstance(s.value, BaseException)), None)
    raise AssertionError("\n".join(lines)) from failure


def _same(
    wanted: MarbleSignal, got: MarbleSignal, error: BaseException | type[BaseException] | None
) -> bool:
    if (wanted.time_s, wanted.name) != (got.time_s, got.name):
        return False
    if got.name != "on_error" or error is None:
        return got.name != "on_next" or _equal(wanted.value, got.value)
    return isinstance(got.value, error) if isinstance(error, type) else got.value is error
