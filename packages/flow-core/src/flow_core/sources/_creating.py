"""`create`: a flow of the items that a function pushes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Generic, TypeVar, final

from typing_extensions import override

from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.errors import is_fatal
from flow_core.flow import Flow
from flow_core.protocols import Publisher, Subscriber
from flow_core.sources._emitter import OVERFLOWS, Emitter, EmitterSubscription, Overflow
from flow_core.stages._template import describe, refuse_coroutine_function
from flow_core.subscribers._strict import core_subscriber

__all__ = ["create"]

T = TypeVar("T")


@final
class CreateSource(Publisher[T], Generic[T]):
    """The items that a function pushes into an emitter.

    The function is called once per subscriber.
    """

    __slots__ = ("_capacity", "_function", "_overflow")

    def __init__(
        self, function: Callable[[Emitter[T]], object], overflow: Overflow, capacity: int
    ) -> None:
        self._function = function
        self._overflow: Overflow = overflow
        self._capacity = capacity

    @property
    def keeps_latest(self) -> bool:
        """Return whether the next item replaces an item that was not requested in time."""
        return self._overflow == "latest"

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        emitter = EmitterSubscription(
            core_subscriber(subscriber), self._overflow, self._capacity, repr(self)
        )
        emitter.start()
        if emitter.cancelled:
            return
        try:
            made = self._function(emitter)
            if isinstance(made, Coroutine):
                made.close()
                raise TypeError(
                    f"{self!r} takes a plain function; from_async_iterable() takes an async one "
                    "that yields, and from_future() a coroutine"
                )
        except BaseException as error:
            if is_fatal(error):
                emitter.cancel()
                raise
            emitter.error(error)

    def __repr__(self) -> str:
        return f"create({describe(self._function)})"


def create(
    subscribe: Callable[[Emitter[T]], object],
    *,
    overflow: Overflow = "buffer",
    capacity: int = DEFAULT_PREFETCH,
) -> Flow[T]:
    """The items that a function pushes: a bridge from callbacks, listeners and the like.

    >>> def temperatures(emitter: Emitter[int]) -> None:
    ...     emitter.on_dispose(lambda: print("closed"))
    ...     for degrees in (19, 20, 21):
    ...         emitter.next(degrees)
    ...     emitter.complete()
    >>> handle = create(temperatures).map(lambda degrees: f"{degrees} °C").subscribe(print)
    19 °C
    20 °C
    21 °C
    closed

    The emitter may be kept and used after the function has returned, by any threads: items that
    they send at the same time are put in some order and delivered one by one. No thread is blocked.

    =========== ==================================================================================
    `overflow`  treatment of an item that is not requested
    =========== ==================================================================================
    ``buffer``  it waits, as one of at most `capacity`; without room the flow fails with
                MissingBackpressureError, after the items that wait
    ``error``   the flow fails with MissingBackpressureError
    ``drop``    it goes to the dropped-items hook
    ``latest``  it replaces the item that waits, if there is one, which goes to that hook
    ``missing`` it is delivered all the same, for an operator downstream that deals with it
    =========== ==================================================================================

    A ``for`` loop requests 128 items ahead, and an ``async for`` loop does so, too: items within
    these 128 count as requested. With ``latest``, however, the loops request each item when they
    need it, so that they get the newest one.

    Requested items wait, too, while another thread delivers; in each policy, at most `capacity` of
    them wait. A producer that can be slowed down looks at ``emitter.requested``, or sends as many
    items as its ``emitter.on_request`` function is asked for: then no item has to wait.

    Demand: see above. Thread: items come on the emitting thread, or on the requester's if they had
    to wait. Fusion: ``buffer`` grants ASYNC, also across threads: its queue is shared.

    Args:
        subscribe: called with the emitter once per subscriber, after its on_subscribe, in the
            subscribing thread; not called if the subscriber has cancelled by then. If it raises an
            error, the flow fails with that error. Its result is not used: clean up in
            ``emitter.on_dispose``.
        overflow: the policy from the table.
        capacity: the most items that wait, at least 1; `UNBOUNDED` to be limited by memory only.

    Raises:
        TypeError: if `subscribe` cannot be called, or `capacity` is not an int.
        ValueError: if `capacity` is less than 1, or `overflow` is not in the table.
    """
    if not callable(subscribe):
        raise TypeError(f"create() takes a function of an emitter, not {subscribe!r}")
    refuse_coroutine_function(
        "create", subscribe, "from_async_iterable() takes an async generator, which awaits itself"
    )
    if overflow not in OVERFLOWS:
        raise ValueError(f"create(overflow=) takes one of {', '.join(OVERFLOWS)}, not {overflow!r}")
    source: CreateSource[T] = CreateSource(
        subscribe, overflow, check_prefetch(capacity, "capacity")
    )
    return Flow(source)
