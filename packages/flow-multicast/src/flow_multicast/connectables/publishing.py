"""`multicast`, `publish`, `replay` and their kin: one run of a flow, for many subscribers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_origin, overload

from flow_core import Flow, Operator
from flow_core.assembly import labelled
from flow_core.clocks import Clock, Seconds, check_delay
from flow_core.connectable import Connectable
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.protocols import Processor, Publisher
from flow_core.stages import describe
from flow_multicast.connectables.multicast import MulticastConnectable
from flow_multicast.connectables.selecting import Selected
from flow_multicast.processors import BehaviorProcessor, MulticastProcessor, ReplayProcessor

__all__ = ["cache", "multicast", "publish", "publish_value", "replay", "share"]

T = TypeVar("T")
R = TypeVar("R")


def multicast(
    processor: Processor[T, R] | Callable[[], Processor[T, R]],
) -> Operator[T, Connectable[R]]:
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
    """
    detail = describe(processor)
    name = f"multicast({detail})"
    # A class with its type argument is not a class any more, but has its attributes.
    if isinstance(get_origin(processor) or processor, type) or not hasattr(processor, "on_next"):
        if not callable(processor):
            raise TypeError(f"multicast() takes a processor or what makes one, not {processor!r}")
        factory = processor
        label = labelled("multicast", detail)
        return Operator(
            "multicast",
            lambda flow: MulticastConnectable(flow, factory, label=label, name=name),
            detail,
        )
    label = labelled("multicast", detail)
    fixed: Any = processor  # Any: it cannot be called, so it is a processor
    return Operator(
        "multicast",
        lambda flow: MulticastConnectable(flow, None, processor=fixed, label=label, name=name),
        detail,
    )


@overload
def publish(*, prefetch: int = ...) -> Operator[T, Connectable[T]]: ...


@overload
def publish(
    selector: Callable[[Flow[T]], Publisher[R]], *, prefetch: int = ...
) -> Operator[T, Flow[R]]: ...


def publish(
    selector: Callable[[Flow[T]], Publisher[R]] | None = None,
    *,
    prefetch: int = DEFAULT_PREFETCH,
) -> Operator[T, Connectable[T]] | Operator[T, Flow[R]]:
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
    """
    check_prefetch(prefetch)

    def processor() -> MulticastProcessor[T]:
        return MulticastProcessor(prefetch)

    if selector is None:
        label = labelled("publish", "")

        def connectable(flow: Flow[T]) -> Connectable[T]:
            return MulticastConnectable(flow, processor, label=label, name="publish()")

        return Operator("publish", connectable)
    if not callable(selector):
        raise TypeError(f"publish() takes a function from a Flow to a Flow, not {selector!r}")
    chosen, label = selector, labelled("publish", describe(selector))

    def selected(flow: Flow[T]) -> Flow[R]:
        return Flow(Selected(flow, processor, chosen, label))

    return Operator("publish", selected, describe(selector))


def share(
    *, prefetch: int = DEFAULT_PREFETCH, grace: Seconds = 0.0, clock: Clock | None = None
) -> Operator[T, Flow[T]]:
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
    """
    grace_s = check_delay(grace)
    published: Operator[T, Connectable[T]] = publish(prefetch=prefetch)
    return Operator(
        "share",
        lambda flow: flow.pipe(published).ref_count(grace=grace_s, clock=clock),
        f"grace={grace_s:g}" if grace_s else "",
    )


def publish_value(value: T) -> Operator[T, Connectable[T]]:
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
    """
    detail = describe(value)
    BehaviorProcessor(value)  # it refuses None, here where the user's line is
    label = labelled("publish_value", detail)

    def connectable(flow: Flow[T]) -> Connectable[T]:
        return MulticastConnectable(
            flow, lambda: BehaviorProcessor(value), label=label, name=f"publish_value({detail})"
        )

    return Operator("publish_value", connectable, detail)


@overload
def replay(
    *, size: int | None = None, ttl: Seconds | None = None, clock: Clock | None = None
) -> Operator[T, Connectable[T]]: ...


@overload
def replay(
    selector: Callable[[Flow[T]], Publisher[R]],
    *,
    size: int | None = None,
    ttl: Seconds | None = None,
    clock: Clock | None = None,
) -> Operator[T, Flow[R]]: ...


def replay(
    selector: Callable[[Flow[T]], Publisher[R]] | None = None,
    *,
    size: int | None = None,
    ttl: Seconds | None = None,
    clock: Clock | None = None,
) -> Operator[T, Connectable[T]] | Operator[T, Flow[R]]:
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
    """

    def processor() -> ReplayProcessor[T]:
        return ReplayProcessor(size, ttl=ttl, clock=clock)

    limits = repr(processor()).removeprefix("ReplayProcessor(").removesuffix(")")
    if selector is None:
        label = labelled("replay", limits)

        def connectable(flow: Flow[T]) -> Connectable[T]:
            return MulticastConnectable(
                flow, processor, keeps=True, label=label, name=f"replay({limits})"
            )

        return Operator("replay", connectable, limits)
    if not callable(selector):
        raise TypeError(f"replay() takes a function from a Flow to a Flow, not {selector!r}")
    detail = ", ".join(filter(None, (describe(selector), limits)))
    chosen, label = selector, labelled("replay", detail)

    def selected(flow: Flow[T]) -> Flow[R]:
        return Flow(Selected(flow, processor, chosen, label))

    return Operator("replay", selected, detail)


def cache(
    *, size: int | None = None, ttl: Seconds | None = None, clock: Clock | None = None
) -> Operator[T, Flow[T]]:
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
    """
    replayed: Operator[T, Connectable[T]] = replay(size=size, ttl=ttl, clock=clock)
    return Operator("cache", lambda flow: flow.pipe(replayed).auto_connect(), replayed.detail)
