"""The base of processors whose subscribers do not wait for each other."""

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
"""The number of requested amounts that may wait to be added up."""
_PATIENCE_S: Final = 5.0
"""The time that the feeding thread waits for another thread to send an item, in seconds."""
_TURN_S: Final = 0.0001
"""The interval, in seconds, at which the feeding thread checks whether that other thread has sent
the item."""


def ignore(item: object) -> None:
    """Ignore an item whose subscriber has left."""


class HotSubscription(SerialDrain, Subscription, Scannable, Generic[T]):
    """One subscriber of a `HotProcessor`, also called a line. The permit of a new line is taken.

    A line is in one of two states. The state says which permit a thread needs to handle the line:

    * `live`: the line has got everything that it should get so far, and wants more. The feeding
      thread, which has the processor's permit, sends each item to the line as it comes, beginning
      when it next looks at the lines; the line's own drain does nothing. The feeding thread also
      ends that state.
    * on its own: the line's drain, with the line's permit, sends the items that are there for it,
      in the thread that requests, and makes the line live when it has caught up. A line without
      demand stays on its own.

    Args:
        owner: the processor.
        subscriber: the user's subscriber, for statistics.
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
        """Amounts that were requested, and were not added up yet."""
        self.requested = 0
        """All demand that was added up so far: by the line's drain while the line is on its own,
        otherwise by the feeding thread."""
        self.position = 0
        """The position of the item that the line gets next; not updated while the line is live."""
        self.start = 0
        """The line may get items up to the position ``start + requested``."""
        self.bad: ValueError | None = None

    def introduced(self) -> None:
        """Note that the subscriber has its subscription, and get its function for items."""
        downstream = self.downstream
        if downstream is not None and self.bad is None and not self.conditional:
            self.receive = downstream.receiver()
            if self.downstream is None or self.bad is not None:
                self.mute()

    # -- for the subscriber

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
        """Drop the subscriber (§3.13), and return it, or None if it was dropped before."""
        downstream, self.downstream = self.downstream, None
        self.mute()
        self.subscriber = None
        return downstream

    def add_up(self) -> None:
        """Add up the demand. Only the thread that the line belongs to calls this."""
        asked = self.asked
        while count := len(asked):
            # There is no call between these two: Ctrl-C loses and doubles nothing.
            self.requested += asked[0] if count == 1 else sum(asked[:count])
            del asked[:count]

    def place(self, calls: list[Callable[[T], object]], index: int) -> None:
        """Set the place of `receive` among the functions that are called with each item."""
        # `mute` does this in the opposite order: it finds this place, or we see here that it has
        # run. If it has found the place before this one, it clears this one: we see that here, too.
        self._place = (calls, index)
        if self.receive is ignore:
            calls[index] = ignore
            self._place = None

    def displace(self) -> None:
        """Remove `receive` from these functions: an item that is just being sent skips it."""
        # Two threads may do this at a time. So a place is never used twice, and a thread that finds
        # none relies on no item being sent there.
        place = self._place
        if place is not None:
            calls, index = place
            calls[index] = ignore
            self._place = None

    def mute(self) -> None:
        """Stop sending items."""
        self.receive = ignore
        self.displace()

    @abstractmethod
    def disown(self) -> None:
        """Let go of the processor: a line that has ended must not keep its items alive (§3.13).

        A processor without subscribers takes its place. Calls that another thread still makes on
        this line, such as a request that began earlier, change nothing in that processor.
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
        """Return how many of the kept items this line still has to get."""
        return 0

    # -- with the processor's permit

    def enters(self, position: int) -> bool:
        """Return whether the item at `position` is the next one for this line, now live."""
        return self.position == position

    # -- with the permit

    @abstractmethod
    def joins(self, late: bool) -> None:
        """Start with the items that come from now on; `late` is True if the processor has ended.

        This is called once.
        """

    @abstractmethod
    def deliver(self) -> None:
        """Send the available items, on demand; call `finish` when no more items will come."""

    def send(self, item: T) -> bool:
        """Send an item, for which there is demand; return False if the subscriber left by then."""
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
        """Send items from `position` on, as long as the subscriber takes them."""
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
        """Remove the subscriber, which has raised `error` (§2.13).

        The result is the error to raise, if there is one.
        """
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
        """Return whether the subscriber is still there, and has made no bad request (§3.9)."""
        return self.downstream is not None and self.bad is None

    @property
    def demand(self) -> int:
        """Return how many items may be sent to this line now."""
        requested = self.requested + sum(self.asked)
        if requested >= UNBOUNDED:
            return UNBOUNDED
        position = self.owner.position if self.live else self.position
        return self.start + requested - position


class HotProcessor(SerialDrain, CoreSubscriber[T], Processor[T, T], Generic[T]):
    """Takes all items of its upstream, and sends them to each subscriber independently.

    A subclass makes the `HotSubscription` of a subscriber, and decides what is kept of an item
    (`keep`). Items have positions, counted from the first. A subscription is called a line (see
    `HotSubscription`). The permit is held while an item is sent to the live lines; an item that
    comes meanwhile, from within an on_next, waits for that.
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
        """All lines. Any thread adds and removes lines."""
        self._fresh: dict[HotSubscription[T], None] = {}
        """Lines that have become live, and get items once the feeding thread has looked at them.
        Any thread adds; the thread that removes a line decides about it."""
        self._changes: dict[HotSubscription[T], None] = {}
        """Live lines that have left, have made a bad request, or have requested often. Any thread
        adds lines."""
        self._member: dict[int, object] = {}
        """The first upstream (`setdefault`), for good."""
        self._ends: dict[int, list[BaseException | None]] = {}
        """The first end (`setdefault`), with an error or None: nothing more is accepted."""
        self._upstream: Subscription | None = None

        # The following are changed with the permit.
        self._live: dict[HotSubscription[T], None] = {}
        """The live lines to which items are sent."""
        self._serving: tuple[list[HotSubscription[T]], list[Callable[[T], object]]] = ([], [])
        """The live lines in their order, with some that are not live any more, and the functions of
        all these. A line that leaves replaces its function by one that does nothing."""
        self._conditional = False
        """True if one of these lines is, or was, conditional."""
        self._agreed = NEVER
        """As far as is known, all lines in `_live` want the items before this position."""
        self.common = NEVER
        """All live lines, also the fresh ones, want the items before this position. Any thread
        lowers it."""
        self.position = 0
        """The position of the next item: how many were accepted."""
        self.refill = NEVER
        """`ask` has something to do from this position on."""
        self._waiting: deque[T] = deque()
        """Items that came while another item was sent."""
        self._over = False
        """True when no more is sent to the live lines: the lines themselves send the end."""
        self._trace: TracebackType | Empty | None = EMPTY
        """The traceback of the error, once it was sent; EMPTY before."""

    # -- methods that subclasses define

    @abstractmethod
    def line(self, subscriber: Subscriber[T], downstream: CoreSubscriber[T]) -> HotSubscription[T]:
        """Return the line of a new subscriber."""

    keeps: ClassVar[bool] = True
    """False if `keep` does nothing."""

    def keep(self, item: T) -> None:
        """Keep an item, which gets the position `position`. The caller must hold the permit."""

    def begin(self, upstream: Subscription) -> None:
        """Make the first request to the new upstream."""
        upstream.request(UNBOUNDED)

    def ask(self) -> None:
        """Request more of the upstream."""

    def tidy(self) -> None:
        """Clean up. Called with the permit, while no item is being sent."""

    def counts(self, line: HotSubscription[T], *, on_its_own: bool) -> None:
        """Note that a line is on its own or, if `on_its_own` is False, no longer is.

        Calling this twice is harmless.
        """

    def left(self) -> None:
        """Note that a line has left."""

    def room(self) -> int:
        """Return how many items may come before one exceeds a subscriber's room or demand."""
        return UNBOUNDED

    @property
    def ended(self) -> bool:
        """Return whether the upstream has ended and all its items are available."""
        return self._over

    @property
    def error(self) -> BaseException | None:
        """The error that this has ended with, if there is one."""
        error = self._ends[0][0] if self._ends else None
        if error is not None and self._trace is not EMPTY:
            error.__traceback__ = self._trace  # earlier raises have added frames to it (X14)
        return error

    def lines(self) -> tuple[HotSubscription[T], ...]:
        """The lines of all subscribers at this moment."""
        return (*self._lines,)  # at once, also without a GIL: `tuple` would iterate

    def enter_live(self, line: HotSubscription[T]) -> bool:
        """Make `line`, which has demand, `live` (see `HotSubscription`).

        If the result is False, the line is not live, and has to look again for items, the end or a
        cancel.

        The drain of the line calls this.
        """
        if line.position < self.position or self._over or not line.wanted:
            return False
        self.make_live(line)
        # `_accept` moves the position before it reads `common`, which `make_live` has just set. So
        # `_accept` has found the line, or will find it, or has moved the position without finding
        # it, which we see here. The same holds for the end, and for a line that leaves.
        if line.position >= self.position and not self._over and line.wanted:
            return True
        return not self.unmake_live(line)

    def make_live(self, line: HotSubscription[T]) -> None:
        """Have the feeding thread send items to `line`, from the next item on."""
        line.live = True
        self._fresh[line] = None
        self.common = -1

    def unmake_live(self, line: HotSubscription[T]) -> bool:
        """Undo `make_live` for `line`.

        If the result is False, the feeding thread has found the line already, and owns it now.
        """
        if self._fresh.pop(line, EMPTY) is EMPTY:
            return False
        line.live = False
        return True

    # -- for the subscribers

    @property
    def flow(self) -> Flow[T]:
        """This processor with the operators of a `Flow`."""
        return Flow(self)

    @property
    def has_subscribers(self) -> bool:
        """True if there is a subscriber now."""
        return bool(self._lines)

    @property
    def terminated(self) -> bool:
        """True if this has ended, and accepts nothing more."""
        return bool(self._ends)

    @final
    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        downstream = core_subscriber(subscriber)
        line = self.line(subscriber, downstream)
        # We hold the permit, so that no signal comes before on_subscribe has returned (§1.9).
        line.try_enter()
        try:
            downstream.on_subscribe(line)
        except BaseException:
            line.release()
            line.disown()
            line.leave()
            raise
        line.introduced()
        self._lines[line] = None  # before the check below: it gets an end that comes later
        line.joins(self._over)
        if self._over:
            self._lines.pop(line, None)
        if self._over or not line.wanted:  # read now: an end that comes later finds the line
            self.unmake_live(line)
        if line.downstream is None:
            self.forget(line)
        line.run_entered()

    @final
    def forget(self, line: HotSubscription[T]) -> None:
        """Remove a line: its subscriber has cancelled, or gets its terminal."""
        known = self._lines.pop(line, EMPTY) is not EMPTY
        self.counts(line, on_its_own=False)
        if line.live and not self.unmake_live(line):
            self.note(line)
        line.disown()
        if known:
            self.left()

    @final
    def refuse(self, line: HotSubscription[T]) -> None:
        """Fail a line, muted already, for a bad request; never while its on_next runs."""
        self.note(line)
        line.signal()

    @final
    def note(self, line: HotSubscription[T]) -> None:
        """Have the feeding thread look at `line`, when no item is being sent to it."""
        self._changes[line] = None
        self.signal()

    def _look_at(self, line: HotSubscription[T]) -> None:
        """Handle the reason why `line` was noted: no item is being sent to it."""
        if not line.live:
            return
        if line.wanted:
            line.add_up()
            return
        self._retire(line, self.position)
        if not self._live:  # drop the references now: the next item may never come
            self._serving = ([], [])
        line.signal()  # it sends what it has to send

    def _retire(self, line: HotSubscription[T], position: int) -> None:
        """End the live state of a line, which gets the item at `position` next.

        Then signal the line.
        """
        if self._live.pop(line, EMPTY) is EMPTY:
            self.unmake_live(line)
            return
        line.position = position  # before its drain, in whichever thread, may use it
        line.live = False
        self.common = -1  # when the next item comes, no reference to it is kept

    def statistics(self) -> Statistics:
        """Return the statistics: the subscribers served, and what waits.

        Any thread may call this.
        """
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
        """The number of items that this keeps."""
        return 0

    @property
    def capacity(self) -> int:
        """The number of items that this keeps at most."""
        return 0

    # -- for the feeding thread

    @final
    def offer(self, item: T) -> bool:
        """Take `item`, unless a subscriber has no room for it. One call at a time.

        Returns:
            False if a subscriber has no room, if no more items can wait from within an on_next, or
            if the processor has ended. In these cases no subscriber gets the item.

        Raises:
            NoneItemError: if `item` is None.
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
        """Take the first upstream; cancel every other one."""
        if subscription is None:
            raise none_given("on_subscribe")
        mine = object()
        if self._member.setdefault(0, mine) is mine:
            self._upstream = subscription
            if not self._ends:  # read now: a thread that ends it later finds the upstream
                self.begin(subscription)
                return
            self._upstream = None
        subscription.cancel()

    @final
    @override
    def on_next(self, item: T, /) -> None:
        """Take an item. One call at a time."""
        if item is None:
            raise none_given("on_next")
        permit = self._permit
        if not self._waiting:  # items that wait come first, and only this thread adds to them
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
        """End with `error`: the upstream has ended; the subscribers get the error."""
        self.on_error(error)
        return True

    def _let_send(self) -> bool:
        """Wait while another thread, which has cancelled or requested, sends the items that wait.

        Returns:
            Whether there is room afterwards. There is none if this very thread is sending an item,
            or if the other thread does not continue.
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
                f"{self!r} got more than {DEFAULT_PREFETCH} items while it sent another one; "
                "do not feed it from within its own subscribers, or use serialized()"
            )
        )
        if ended and upstream is not None:
            hooks.cancel(upstream)

    def _end(self, error: BaseException | None) -> bool:
        """Accept no more, and end all subscribers; return False if that was done before."""
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
        done = bool(self._ends)  # read before the items: those from before the end are sent
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
        """Keep an item, and send it to all live lines."""
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
        """Find out up to where all live lines want items; the item at `position` comes next.

        Returns:
            The lines that do not want it: they are not live any more.
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
        if self._fresh:  # read now: a line that becomes live later lowers it itself
            self.common = -1
        return behind

    def _admit(self, position: int) -> list[HotSubscription[T]]:
        """Serve the lines that have become live, with the item at `position` first.

        Returns:
            The lines that have not got all items before that one: they are not live any more.
        """
        fresh = self._fresh
        lines, calls = self._serving
        behind: list[HotSubscription[T]] = []
        for line in list(fresh):
            if fresh.pop(line, EMPTY) is EMPTY:
                continue  # another thread has just taken it back
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
        """Drop the lines that are not live any more."""
        lines = list(self._live)
        self._live = dict.fromkeys(lines)  # a dict does not shrink
        calls = [line.receive for line in lines]
        self._serving = (lines, calls)
        self._conditional = any(line.conditional for line in lines)
        for index, line in enumerate(lines):
            line.place(calls, index)

    def _tell(self) -> None:
        """End the live state of all lines: each sends its remaining items, then the terminal."""
        self._over = True
        # A line that becomes live later sees that the processor has ended.
        retired = (*self._live, *self._fresh)
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
    """Signal all `lines`, even if one raises; return the first error."""
    fatal: BaseException | None = None
    for line in lines:
        try:
            line.signal()
        except BaseException as raised:
            fatal = fatal or raised
    return fatal
