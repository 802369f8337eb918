"""What processors have in common whose subscribers do not wait for each other."""

from __future__ import annotations

import sys
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from operator import length_hint
from types import FrameType, TracebackType
from typing import ClassVar, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import Flow, hooks
from flow_core.demand import DEFAULT_PREFETCH, UNBOUNDED, bad_request
from flow_core.errors import MissingBackpressureError, is_fatal, none_given
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Empty,
    Processor,
    Subscriber,
    Subscription,
)
from flow_core.serial import SerialDrain
from flow_core.stored import release_frames
from flow_core.subscribers import core_subscriber

__all__ = ["MANY", "NEVER", "HotProcessor", "HotSubscription", "ignore"]

T = TypeVar("T")

NEVER: Final = 4 * UNBOUNDED
"""A position in the sequence of items that is never reached."""
MANY: Final = 64
"""How many amounts that were requested may wait to be added up."""
_PATIENCE_S: Final = 5.0
"""How long who feeds waits for another thread to send an item, in seconds."""
_TURN_S: Final = 0.0001
"""How often he looks whether it has."""


def ignore(item: object) -> None:
    """What an item is given to when its subscriber has left."""


class HotSubscription(SerialDrain, Subscription, Scannable, Generic[T]):
    """One subscriber of a `HotProcessor`. Made with the permit taken.

    It is in one of two states, and belongs to whoever has the permit that goes with it:

    * `live`: it has got all that it is to get so far, and wants more. Whoever feeds the processor
      sends it each item as it comes, from the next time on that he looks who is there; its own
      drain does nothing. He also says when it is live no longer.
    * on its own: its drain sends what there is for it, in the thread of whoever asks, and makes it
      live when it has caught up. One without demand stays on its own.

    Args:
        owner: the processor.
        subscriber: who subscribed, for statistics.
        downstream: gets the signals.
    """

    __slots__ = (
        "__weakref__",
        "_place",
        "asked",
        "bad",
        "conditional",
        "downstream",
        "live",
        "owner",
        "position",
        "receive",
        "requested",
        "start",
        "subscriber",
    )

    def __init__(
        self,
        owner: HotProcessor[T],
        subscriber: Subscriber[T],
        downstream: CoreSubscriber[T],
    ) -> None:
        super().__init__()
        self.owner = owner
        self.subscriber: Subscriber[T] | None = subscriber
        self.downstream: CoreSubscriber[T] | None = downstream
        self.conditional = isinstance(downstream, ConditionalSubscriber)
        self.receive: Callable[[T], object] = (
            downstream.try_on_next
            if isinstance(downstream, ConditionalSubscriber)
            else downstream.on_next
        )
        self._place: tuple[list[Callable[[T], object]], int] | None = None
        self.live = False
        self.asked: list[int] = []
        """Amounts that were requested, and not added up yet."""
        self.requested = 0
        """All that was ever requested, as far as it was added up: by its drain while it is on its
        own, else by whoever feeds the processor."""
        self.position = 0
        """The item that it gets next; not kept up to date while it is live."""
        self.start = 0
        """It may get items up to the position ``start + requested``."""
        self.bad: ValueError | None = None

    def introduced(self) -> None:
        """The subscriber has its subscription: ask what to call with items."""
        downstream = self.downstream
        if downstream is not None and self.bad is None and not self.conditional:
            self.receive = downstream.receiver()
            if self.downstream is None or self.bad is not None:
                self.mute()

    # -- from the subscriber

    @override
    def request(self, n: int, /) -> None:
        bad = None if n.__class__ is int and n > 0 else bad_request(n)
        if self.downstream is None or self.bad is not None:
            return
        if bad is not None:
            self.bad = bad
            self.mute()
            self.owner.refuse(self)
        elif self.requested < UNBOUNDED:
            asked = self.asked
            asked.append(n)
            if len(asked) > MANY and self.live:
                self.owner.note(self)
            self.signal()

    @override
    def cancel(self) -> None:
        if self.release() is not None:
            self.owner.forget(self)

    def release(self) -> CoreSubscriber[T] | None:
        """Let go of the subscriber (§3.13); what was let go of, or None if it was before."""
        downstream, self.downstream = self.downstream, None
        self.mute()
        self.subscriber = None
        return downstream

    def add_up(self) -> None:
        """Take in what was requested. Called by whoever the line belongs to."""
        asked = self.asked
        while count := len(asked):
            # There is no call between these two: nothing is lost or doubled if Ctrl-C comes.
            self.requested += asked[0] if count == 1 else sum(asked[:count])
            del asked[:count]

    def place(self, calls: list[Callable[[T], object]], index: int) -> None:
        """Say where `receive` stands among the functions that are called with each item."""
        # `mute` does the same the other way round: it finds this place, or is seen here. It may
        # also give this one up, for the one it has found before.
        self._place = (calls, index)
        if self.receive is ignore:
            calls[index] = ignore
            self._place = None

    def displace(self) -> None:
        """It is no longer among them: one that is being sent to others now skips it."""
        # Two threads may do this at a time. So a place is never used twice, and who finds none
        # relies on nothing being sent there.
        place = self._place
        if place is not None:
            calls, index = place
            calls[index] = ignore
            self._place = None

    def mute(self) -> None:
        """Send no items any more."""
        self.receive = ignore
        self.displace()

    @abstractmethod
    def disown(self) -> None:
        """It is over: whoever keeps it does not keep the processor, with its items (§3.13).

        A processor that serves nobody takes its place. What another thread still does here, as a
        request that has begun before, changes nothing there.
        """

    @override
    def statistics(self) -> Statistics:
        over = self.downstream is None
        return Statistics(
            operator="served",
            requested=0 if over else max(self.demand, 0),
            buffered=0 if over else self.waiting,
            terminated=over,
            error=self.bad,
            upstream=None if over else self.owner,
        )

    @property
    def waiting(self) -> int:
        """How many of the items that are kept it has still to get."""
        return 0

    # -- with the processor's permit

    def enters(self, position: int) -> bool:
        """It is live: whether the item at `position` is the next one for it."""
        return self.position == position

    # -- with the permit

    @abstractmethod
    def joins(self, late: bool) -> None:
        """Its subscriber gets what comes from now on; `late` if all is over. Once."""

    @abstractmethod
    def deliver(self) -> None:
        """Send what there is, as far as the demand goes; `finish` when that was all."""

    def send(self, item: T) -> bool:
        """Send an item, for which there is demand; False if the subscriber is gone then."""
        fatal: BaseException | None = None
        try:
            if self.receive(item) is False and self.conditional:
                self.start += 1
        except BaseException as error:
            fatal = self.raised(error)
        if fatal is not None:
            raise fatal
        return self.downstream is not None

    def send_all(self, items: Sequence[T]) -> None:
        """Send items from `position` on, as far as the subscriber wants them."""
        if self.conditional:
            for item in items:
                self.position += 1
                if not self.send(item) or self.bad is not None:
                    break
            return
        receive, position = self.receive, self.position
        rest = iter(items)
        fatal: BaseException | None = None
        try:
            for item in rest:
                receive(item)
                if self.downstream is None or self.bad is not None:
                    break
        except BaseException as error:
            fatal = self.raised(error)
        finally:
            self.position = position + len(items) - length_hint(rest)
        if fatal is not None:
            raise fatal

    def raised(self, error: BaseException) -> BaseException | None:
        """The subscriber let `error` escape (§2.13): it is out. Returns what is to be raised."""
        downstream = self.release()
        self.owner.forget(self)
        if is_fatal(error):
            return error
        try:
            handled = downstream is not None and downstream.on_next_raised(error)
        except BaseException as raised:
            if is_fatal(raised):
                return raised
            hooks.drop_error(raised)
            handled = False
        if not handled:
            hooks.drop_error(error)
        return None

    def finish(self, error: BaseException | None) -> None:
        """Send the terminal."""
        downstream = self.release()
        self.owner.forget(self)
        if downstream is None:
            return
        try:
            if error is None:
                downstream.on_complete()
            else:
                downstream.on_error(error)
        except BaseException as raised:
            if is_fatal(raised):
                raise
            hooks.drop_error(raised)

    @final
    @override
    def drain(self) -> None:
        if self.live or self.downstream is None:
            return
        self.add_up()
        if self.bad is None:
            self.deliver()
        if self.bad is not None and not self.live:
            self.finish(self.bad)  # §3.9

    @property
    def wanted(self) -> bool:
        """Whether the subscriber is there, and has not requested what cannot be (§3.9)."""
        return self.downstream is not None and self.bad is None

    @property
    def demand(self) -> int:
        """How many items may be sent."""
        requested = self.requested + sum(self.asked)
        if requested >= UNBOUNDED:
            return UNBOUNDED
        position = self.owner.position if self.live else self.position
        return self.start + requested - position


class HotProcessor(SerialDrain, CoreSubscriber[T], Processor[T, T], Generic[T]):
    """Takes all that its upstream has, and gives it to each subscriber on its own.

    A subclass makes the `HotSubscription` of a subscriber, and says what is kept of an item
    (`keep`). Items have positions, counted from the first. The permit is held while an item is sent
    to the lines that are live; one that comes meanwhile, from within an on_next, waits for that.
    """

    __slots__ = (
        "__weakref__",
        "_agreed",
        "_changes",
        "_conditional",
        "_ends",
        "_fresh",
        "_lines",
        "_live",
        "_member",
        "_over",
        "_serving",
        "_trace",
        "_upstream",
        "_waiting",
        "common",
        "position",
        "refill",
    )

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[HotSubscription[T], None] = {}
        """All that are there. Any thread adds and takes."""
        self._fresh: dict[HotSubscription[T], None] = {}
        """Those that are live, and to be sent items when whoever feeds has looked at them. Any
        thread adds; who takes one out decides what comes of it."""
        self._changes: dict[HotSubscription[T], None] = {}
        """Live lines that have left, have made a bad request, or have asked often. Any thread."""
        self._member: dict[int, object] = {}
        """Says who was first to be its upstream (`setdefault`), for good."""
        self._ends: dict[int, list[BaseException | None]] = {}
        """The end that was said first (`setdefault`), with an error or None: nothing more is
        accepted."""
        self._upstream: Subscription | None = None

        # What follows is changed with the permit.
        self._live: dict[HotSubscription[T], None] = {}
        """Those of the lines that are live, and are sent items."""
        self._serving: tuple[list[HotSubscription[T]], list[Callable[[T], object]]] = ([], [])
        """The live lines in their order, and some that are not any more; and their functions. One
        who leaves puts a function that does nothing in its place."""
        self._conditional = False
        """Whether one of them is conditional, or was."""
        self._agreed = NEVER
        """All of `_live` want the items before this position, as far as is known."""
        self.common = NEVER
        """The same for all live lines. Any thread lowers it."""
        self.position = 0
        """The position of the next item: how many were accepted."""
        self.refill = NEVER
        """The position from which on `ask` has something to do."""
        self._waiting: deque[T] = deque()
        """Items that came while another one was sent."""
        self._over = False
        """Nothing more is sent to those who are live: the lines tell the end."""
        self._trace: TracebackType | Empty | None = EMPTY
        """The traceback of the error, when those who were there have been told; EMPTY before."""

    # -- for subclasses

    @abstractmethod
    def line(self, subscriber: Subscriber[T], downstream: CoreSubscriber[T]) -> HotSubscription[T]:
        """The line of a new subscriber."""

    keeps: ClassVar[bool] = True
    """Whether `keep` does anything."""

    def keep(self, item: T) -> None:
        """An item comes, as the one at `position`. With the permit."""

    def begin(self, upstream: Subscription) -> None:
        """There is an upstream: request of it."""
        upstream.request(UNBOUNDED)

    def ask(self) -> None:
        """Request more of the upstream."""

    def tidy(self) -> None:
        """The permit is there, and no item is being sent."""

    def counts(self, line: HotSubscription[T], *, on_its_own: bool) -> None:
        """A line begins to be on its own, or ceases if `on_its_own` is False. Idempotent."""

    def left(self) -> None:
        """Some line has left."""

    def room(self) -> int:
        """How many items may come before one is too much for a subscriber."""
        return UNBOUNDED

    @property
    def ended(self) -> bool:
        """Whether all items are there."""
        return self._over

    @property
    def error(self) -> BaseException | None:
        """What it has ended with."""
        error = self._ends[0][0] if self._ends else None
        if error is not None and self._trace is not EMPTY:
            error.__traceback__ = self._trace  # whoever raised it before has added to it (X14)
        return error

    def lines(self) -> tuple[HotSubscription[T], ...]:
        """The lines of all subscribers at this moment."""
        return (*self._lines,)  # at once, also without a GIL: `tuple` would iterate

    def enter_live(self, line: HotSubscription[T]) -> bool:
        """Make a line live that has demand; False if it has to look again. Called by its drain."""
        if line.position < self.position or self._over or not line.wanted:
            return False
        self.make_live(line)
        # `_accept` moves the position before it reads `common`, and `make_live` was before this.
        # So it has found the line, or will, or has moved on without it, which is seen here. The
        # same holds for the end, and for who leaves.
        if line.position >= self.position and not self._over and line.wanted:
            return True
        return not self.unmake_live(line)

    def make_live(self, line: HotSubscription[T]) -> None:
        """From the next item on, it is sent to `line` by whoever feeds."""
        line.live = True
        self._fresh[line] = None
        self.common = -1

    def unmake_live(self, line: HotSubscription[T]) -> bool:
        """Take back `make_live`; False if whoever feeds has found the line, which is his now."""
        if self._fresh.pop(line, EMPTY) is EMPTY:
            return False
        line.live = False
        return True

    # -- towards the subscribers

    @property
    def flow(self) -> Flow[T]:
        """This processor with the operators of a `Flow`."""
        return Flow(self)

    @property
    def has_subscribers(self) -> bool:
        """Whether somebody is subscribed now."""
        return bool(self._lines)

    @property
    def terminated(self) -> bool:
        """Whether it has ended, and accepts nothing more."""
        return bool(self._ends)

    @final
    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        downstream = core_subscriber(subscriber)
        line = self.line(subscriber, downstream)
        # The permit is held, so that nothing is signalled before on_subscribe has returned (§1.9).
        line.try_enter()
        try:
            downstream.on_subscribe(line)
        except BaseException:
            line.release()
            line.disown()
            line.leave()
            raise
        line.introduced()
        self._lines[line] = None  # before the question: it is told of an end that comes later
        line.joins(self._over)
        if self._over:
            self._lines.pop(line, None)
        if self._over or not line.wanted:  # looked at now: what comes later finds the line
            self.unmake_live(line)
        if line.downstream is None:
            self.forget(line)
        line.run_entered()

    @final
    def forget(self, line: HotSubscription[T]) -> None:
        """The subscriber of `line` has cancelled, or gets its terminal."""
        known = self._lines.pop(line, EMPTY) is not EMPTY
        self.counts(line, on_its_own=False)
        if line.live and not self.unmake_live(line):
            self.note(line)
        line.disown()
        if known:
            self.left()

    @final
    def refuse(self, line: HotSubscription[T]) -> None:
        """A line, muted already, has made a bad request: it fails, serial with its on_next."""
        self.note(line)
        line.signal()

    @final
    def note(self, line: HotSubscription[T]) -> None:
        """Have whoever feeds look at a line, when no item is being sent to it."""
        self._changes[line] = None
        self.signal()

    def _look_at(self, line: HotSubscription[T]) -> None:
        """No item is being sent to `line`: see why it was noted."""
        if not line.live:
            return
        if line.wanted:
            line.add_up()
            return
        self._retire(line, self.position)
        if not self._live:  # there may be no next item to find out
            self._serving = ([], [])
        line.signal()  # it tells what it has to tell

    def _retire(self, line: HotSubscription[T], position: int) -> None:
        """A line is live no longer, and gets the item at `position` next. It is to be signalled."""
        if self._live.pop(line, EMPTY) is EMPTY:
            self.unmake_live(line)
            return
        line.position = position  # before its drain, in whatever thread, may use it
        line.live = False
        self.common = -1  # when the next item comes, nothing of it is kept any more

    def statistics(self) -> Statistics:
        """Who is served, and what waits. Any thread."""
        demand, held_back = UNBOUNDED, list[Subscriber[T]]()
        lines = self.lines()
        for line in lines:
            subscriber, left = line.subscriber, max(line.demand, 0)
            demand = min(demand, left)
            if not left and subscriber is not None:
                held_back.append(subscriber)
        return Statistics(
            operator=repr(self),
            requested=demand if lines else 0,
            buffered=self.buffered,
            capacity=self.capacity,
            terminated=bool(self._ends),
            upstream=self._upstream,
            subscribers=len(lines),
            held_back_by=tuple(held_back),
        )

    @property
    def buffered(self) -> int:
        """How many items it keeps."""
        return 0

    @property
    def capacity(self) -> int:
        """How many items it keeps at most."""
        return 0

    # -- from whoever feeds it

    @final
    def offer(self, item: T) -> bool:
        """Take `item`, unless it would be too much for a subscriber. One call at a time.

        Returns:
            False if it would, if no more items can wait from within an on_next, or if the
            processor has ended: nobody has got it.

        Raises:
            NoneItemError: if it is None.
        """
        if item is not None:
            room = min(self.room(), DEFAULT_PREFETCH)
            if self._ends or len(self._waiting) >= room:
                return False
        self.on_next(item)
        return True

    @final
    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Takes one upstream, and cancels every other."""
        if subscription is None:
            raise none_given("on_subscribe")
        mine = object()
        if self._member.setdefault(0, mine) is mine:
            self._upstream = subscription
            if not self._ends:  # looked at now: who ends it later finds the upstream
                self.begin(subscription)
                return
            self._upstream = None
        subscription.cancel()

    @final
    @override
    def on_next(self, item: T, /) -> None:
        """One call at a time."""
        if item is None:
            raise none_given("on_next")
        permit = self._permit
        if not self._waiting:  # what waits comes first, and only this thread adds to it
            try:
                del permit[0]
            except KeyError:
                pass  # another caller has the permit: the item waits
            else:  # up to the `try` there is no call: Ctrl-C cannot take the permit away
                try:
                    if self._ends:
                        hooks.drop_item(item)
                    else:
                        self._accept(item)
                finally:
                    permit[0] = True
                    if self._missed:
                        self.signal()
                if self.position >= self.refill:
                    self.ask()
                return
        if self._ends:
            hooks.drop_item(item)
        elif len(self._waiting) < DEFAULT_PREFETCH or self._let_send():
            self._waiting.append(item)
            self.signal()
        else:
            self._overflow(item)
        if self.position >= self.refill:
            self.ask()

    @final
    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        if not self._end(error):
            hooks.drop_error(error)

    @final
    @override
    def on_complete(self) -> None:
        self._end(None)

    @final
    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        """The upstream is over; the subscribers hear why."""
        self.on_error(error)
        return True

    def _let_send(self) -> bool:
        """Let another thread, which cancels or requests, send what has come while it was at work.

        Returns:
            Whether there is room then. There will be none if it is this thread that sends, or if
            the other one stands still.
        """
        frame: FrameType | None = sys._getframe()
        accept = type(self)._accept.__code__
        while frame is not None:
            if frame.f_code is accept and frame.f_locals["self"] is self:
                return False
            frame = frame.f_back
        given_up_s = time.monotonic() + _PATIENCE_S
        while len(self._waiting) >= DEFAULT_PREFETCH and time.monotonic() < given_up_s:
            time.sleep(_TURN_S)
        return len(self._waiting) < DEFAULT_PREFETCH

    def _overflow(self, item: T) -> None:
        hooks.drop_item(item)
        upstream = self._upstream
        ended = self._end(
            MissingBackpressureError(
                f"{self!r} was given more than {DEFAULT_PREFETCH} items while it sent another one; "
                "do not feed it from within its own subscribers, or use serialized()"
            )
        )
        if ended and upstream is not None:
            hooks.cancel(upstream)

    def _end(self, error: BaseException | None) -> bool:
        """Accept no more, and tell all subscribers; False if that was done before."""
        end = [error]
        if self._ends.setdefault(0, end) is not end:
            return False
        self._upstream = None
        self.refill = NEVER
        self.signal()
        return True

    # -- with the permit

    @final
    @override
    def drain(self) -> None:
        waiting, changes = self._waiting, self._changes
        done = bool(self._ends)  # read before the items: what came before the end is sent
        while waiting:
            item = waiting.popleft()
            if self._over:
                hooks.drop_item(item)
            else:
                self._accept(item)
        for line in list(changes) if changes else ():
            del changes[line]
            self._look_at(line)
        self.tidy()
        if done and not self._over:
            self._tell()

    def _accept(self, item: T) -> None:
        """Keep an item, and send it to all who are live."""
        fatal: BaseException | None = None
        position = self.position
        if self.keeps:
            self.keep(item)
        self.position = position + 1
        if position >= self.common:  # read after the position was moved: see `enter_live`
            fatal = _signal_each(self._look(position))
        lines, calls = self._serving
        if self._conditional:
            for line, receive in zip(lines, calls, strict=True):
                try:
                    if receive(item) is False and line.conditional:
                        line.start += 1
                except BaseException as error:
                    fatal = line.raised(error) or fatal
        else:
            serving = iter(calls)
            for receive in serving:
                try:
                    receive(item)
                except BaseException as error:
                    fatal = lines[~length_hint(serving)].raised(error) or fatal
        if fatal is not None:
            raise fatal

    def _look(self, position: int) -> list[HotSubscription[T]]:
        """Find out how far all live lines want items, of which the one at `position` comes next.

        Returns:
            Those that do not want it: they are live no longer.
        """
        live = self._live
        behind = self._admit(position) if self._fresh else []
        common = self._agreed
        if common <= position:
            for line in live:
                if line.asked:
                    line.add_up()
            without = [line for line in live if line.start + line.requested <= position]
            behind += without
            for line in without:
                line.displace()
                line.position = position
                self.counts(line, on_its_own=True)  # before its drain may do anything
                if line not in self._lines:  # it has left meanwhile; see `forget`
                    self.counts(line, on_its_own=False)
                self._retire(line, position)
            common = min([line.start + line.requested for line in live], default=NEVER)
        if len(self._serving[0]) > 2 * len(live) + 4:
            self._line_up()
        self._agreed = self.common = common
        if self._fresh:  # looked at now: who becomes live later lowers it himself
            self.common = -1
        return behind

    def _admit(self, position: int) -> list[HotSubscription[T]]:
        """Serve those that have become live, the item at `position` first.

        Returns:
            Those that are behind that: they are live no longer.
        """
        fresh = self._fresh
        lines, calls = self._serving
        behind: list[HotSubscription[T]] = []
        for line in list(fresh):
            if fresh.pop(line, EMPTY) is EMPTY:
                continue  # somebody has just taken it back
            if line.enters(position):
                line.add_up()
                self.counts(line, on_its_own=False)
                self._live[line] = None
                lines.append(line)
                calls.append(line.receive)
                line.place(calls, len(calls) - 1)
                self._conditional |= line.conditional
                self._agreed = min(self._agreed, line.start + line.requested)
            elif line.position > position:  # it has this item already
                fresh[line] = None
            else:
                line.live = False
                behind.append(line)
        return behind

    def _line_up(self) -> None:
        """Keep nothing of those that were live."""
        lines = list(self._live)
        self._live = dict.fromkeys(lines)  # a dict does not shrink
        calls = [line.receive for line in lines]
        self._serving = (lines, calls)
        self._conditional = any(line.conditional for line in lines)
        for index, line in enumerate(lines):
            line.place(calls, index)

    def _tell(self) -> None:
        """All lines are on their own now, and find the end when they have sent what there is."""
        self._over = True
        retired = (*self._live, *self._fresh)  # who becomes live later sees that it is over
        for line in retired:
            self._retire(line, self.position)
            line.displace()
        self._serving = ([], [])
        fatal = _signal_each(tuple(dict.fromkeys((*self._lines, *retired))))
        error = self._ends[0][0]
        if error is not None:
            self._trace = release_frames(error)
        if fatal is not None:
            raise fatal


def _signal_each(lines: Sequence[HotSubscription[T]]) -> BaseException | None:
    """Signal all of them, whatever one raises; returns the first of that."""
    fatal: BaseException | None = None
    for line in lines:
        try:
            line.signal()
        except BaseException as raised:
            fatal = fatal or raised
    return fatal
