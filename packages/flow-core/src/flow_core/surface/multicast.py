"""What flow-multicast does with a flow; written by tools/surface.py."""

# mypy: disable-error-code="no-any-return, import-untyped"
from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, overload

from flow_core.stages._fluent import Fluent

if TYPE_CHECKING:
    from collections.abc import Callable

    from flow_core.clocks import Clock, Seconds
    from flow_core.connectable import Connectable
    from flow_core.flow import Flow
    from flow_core.protocols import Processor, Publisher

__all__ = ["MulticastMethods"]

D = TypeVar("D")
R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)


class MulticastMethods(Fluent[T_co], Generic[T_co]):
    """The methods of `Flow` that flow-multicast executes."""

    _package: ClassVar[str] = "flow-multicast"
    __slots__ = ()

    def cache(
        self, *, size: int | None = None, ttl: Seconds | None = None, clock: Clock | None = None
    ) -> Flow[T_co]:
        """One run of the flow, begun by the first subscriber; all get its items, however late.

        >>> import flow_core as flow
        >>> answer = flow.from_callable(lambda: print("asked") or 42).cache()
        >>> list(answer), list(answer)
        asked
        ([42], [42])

        This is `replay` with `Connectable.auto_connect`: the run continues when all subscribers have
        left, and there is never another run. Late subscribers, even those that come while the end is
        being sent, get the kept items, and then the rest or the end. Slow subscribers get everything at
        their own pace, but with `size` the source waits for them.

        Demand, thread, memory: see `ReplayProcessor`. Fusion: none.

        Args:
            size: see `replay`.
            ttl: see `replay`.
            clock: see `replay`.

        Executed by flow-multicast: `flow_multicast.cache`.
        """
        return self._plugged(
            "flow_multicast.connectables.publishing:cache", size=size, ttl=ttl, clock=clock
        )

    def multicast(
        self, processor: Processor[T_co, R] | Callable[[], Processor[T_co, R]]
    ) -> Connectable[R]:
        """One run of the flow for many subscribers, through a processor.

        >>> import flow_core as flow
        >>> from flow_multicast import MulticastProcessor
        >>> numbers = flow.range(2).multicast(MulticastProcessor)
        >>> first = numbers.flow.subscribe(lambda n: print("first", n))
        >>> connection = numbers.connect()
        first 0
        first 1
        >>> again = numbers.flow.subscribe(lambda n: print("again", n))
        >>> connection = numbers.connect()
        again 0
        again 1

        With a function that makes processors, each connection has its own. Subscribers that come before
        `connect` are kept, and get all items from the first one on; subscribers that come later get
        what the processor sends to late ones; subscribers that come after the end wait for the next
        `connect`. If a connection is disposed of while the source runs, its subscribers get a
        `DisconnectedError`, so each receives an end. What a slow subscriber gets, and what happens when
        a subscriber leaves, is up to the processor.

        With a single processor, all connections share it, and subscribers go straight to it. When it
        has ended, later subscribers and connections get only its end, since a processor ends once; if a
        connection is disposed of, its subscribers do not notice, and continue with the next connection.

        Demand: depends on the processor; the one of `publish` coordinates its subscribers' demand.
        Thread: that of the source. Fusion: none.

        Args:
            processor: a function without arguments that makes a processor (such as a class), or a
                processor.

        Raises:
            TypeError: if `processor` is neither a function nor a processor.

        Executed by flow-multicast: `flow_multicast.multicast`.
        """
        return self._plugged("flow_multicast.connectables.publishing:multicast", processor)

    @overload
    def publish(self, *, prefetch: int = 128) -> Connectable[T_co]: ...
    @overload
    def publish(
        self, selector: Callable[[Flow[T_co]], Publisher[R]], *, prefetch: int = 128
    ) -> Flow[R]: ...
    def publish(
        self, selector: Callable[[Flow[T_co]], Publisher[R]] | None = None, *, prefetch: int = 128
    ) -> Connectable[T_co] | Flow[R]:
        """One run of the flow for many subscribers, in lock-step.

        >>> import flow_core as flow
        >>> sums = flow.range(1, 5).publish(lambda numbers: numbers.map(lambda n: n * 10))
        >>> list(sums)
        [10, 20, 30, 40]

        Without a selector it is a `Connectable`, each connection of which has a `MulticastProcessor`:
        an item goes out when every subscriber has requested it. A slow subscriber holds the others
        back, until it requests or leaves. A late subscriber gets the items that come from then on; a
        subscriber that comes within an on_next gets the next item; a subscriber that comes after the
        end waits for the next `connect`. With a selector, each subscriber has a separate run, and
        `selector` may use the shared flow several times.

        Demand: the smallest demand of all subscribers. Without subscribers, `prefetch` items wait for
        the next subscriber, even if the source has ended after them. Items that wait count as taken by
        subscribers: a source that remembers across crashes which items were taken, such as
        ``from_stream`` of flow-spark with a checkpoint, does not emit them again, even if no subscriber
        has handled them.
        Thread: that of the source, or of the requester. Fusion: none.
        Errors: those of the source go to all. A subscriber that raises is removed; the others continue.

        Args:
            selector: called with the shared flow; returns a flow. When the returned flow ends, so does
                the run.
            prefetch: items to request of the source ahead, and the most that wait.

        Raises:
            TypeError: if `selector` cannot be called, or `prefetch` is not an int.
            ValueError: if `prefetch` is less than 1.

        Executed by flow-multicast: `flow_multicast.publish`.
        """
        return self._plugged(
            "flow_multicast.connectables.publishing:publish", selector, prefetch=prefetch
        )

    def publish_value(self, value: D) -> Connectable[T_co | D]:
        """One run of the flow for many subscribers, which all get the newest value first.

        >>> import flow_core as flow
        >>> levels = flow.never().publish_value(1)
        >>> handle = levels.flow.subscribe(print)
        >>> connection = levels.connect()
        1

        Each connection has a `BehaviorProcessor`: a slow subscriber gets the newest value whenever it
        requests, and not those in between. A late subscriber, also one that comes within an on_next,
        gets the newest value and then every change; after the end, a subscriber waits for the next
        `connect`. No subscriber holds another one back, and the run continues when all have left.

        Demand: everything is requested of the source. Thread: that of the source, or of the thread that
        requests or subscribes. Fusion: none.

        Args:
            value: the value that subscribers get before the flow has emitted one.

        Raises:
            NoneItemError: if `value` is None.

        Executed by flow-multicast: `flow_multicast.publish_value`.
        """
        return self._plugged("flow_multicast.connectables.publishing:publish_value", value)

    @overload
    def replay(
        self, *, size: int | None = None, ttl: Seconds | None = None, clock: Clock | None = None
    ) -> Connectable[T_co]: ...
    @overload
    def replay(
        self,
        selector: Callable[[Flow[T_co]], Publisher[R]],
        *,
        size: int | None = None,
        ttl: Seconds | None = None,
        clock: Clock | None = None,
    ) -> Flow[R]: ...
    def replay(
        self,
        selector: Callable[[Flow[T_co]], Publisher[R]] | None = None,
        *,
        size: int | None = None,
        ttl: Seconds | None = None,
        clock: Clock | None = None,
    ) -> Connectable[T_co] | Flow[R]:
        """One run of the flow for many subscribers; late ones get the earlier items.

        >>> import flow_core as flow
        >>> numbers = flow.range(5).replay(size=2)
        >>> connection = numbers.connect()
        >>> list(numbers.flow)
        [3, 4]

        Without a selector it is a `Connectable`, each connection of which has a `ReplayProcessor`: a
        slow subscriber gets everything at its own pace, but with `size` the source waits for it. A late
        subscriber, also one that comes within an on_next, gets the kept items, and then the rest. A
        subscriber that leaves no longer holds the source back; the run continues when all have left. A
        subscriber that comes after the end, or while the end is being sent, gets the kept items and the
        end, until `Connectable.reset` or the next `connect`. With a selector, each subscriber has a
        separate run, and `selector` may use the shared flow several times.

        Demand, thread, memory: see `ReplayProcessor`. Fusion: none.

        Args:
            selector: called with the shared flow; returns a flow. When the returned flow ends, so does
                the run.
            size: how many items to keep; None to keep all.
            ttl: how long to keep an item, in seconds; None to keep it for ever.
            clock: the clock of `ttl`; None for that of the process.

        Raises:
            TypeError: if `selector` cannot be called, `size` is not an int or `ttl` is not a time.
            ValueError: if `size` is less than 1, or `ttl` is not above 0 and finite.

        Executed by flow-multicast: `flow_multicast.replay`.
        """
        return self._plugged(
            "flow_multicast.connectables.publishing:replay",
            selector,
            size=size,
            ttl=ttl,
            clock=clock,
        )

    def share(
        self, *, prefetch: int = 128, grace: Seconds = 0.0, clock: Clock | None = None
    ) -> Flow[T_co]:
        """One run of the flow while there are subscribers: `publish` and `Connectable.ref_count`.

        >>> import flow_core as flow
        >>> shared = flow.never().finally_action(lambda: print("over")).share()
        >>> first, second = shared.subscribe(print), shared.subscribe(print)
        >>> first.dispose(), second.dispose()
        over
        (None, None)

        A slow subscriber holds the others back, until it requests or leaves. A late subscriber gets the
        items that come from then on. A source that never waits may have ended before a second
        subscriber comes, which then gets a separate run. When the last subscriber has left, the source
        is cancelled. A subscriber that comes while the end is being sent begins a new run.

        Demand, thread, errors: see `publish`. Fusion: none.

        Args:
            prefetch: see `publish`.
            grace: see `Connectable.ref_count`.
            clock: see `Connectable.ref_count`.

        Executed by flow-multicast: `flow_multicast.share`.
        """
        return self._plugged(
            "flow_multicast.connectables.publishing:share",
            prefetch=prefetch,
            grace=grace,
            clock=clock,
        )
