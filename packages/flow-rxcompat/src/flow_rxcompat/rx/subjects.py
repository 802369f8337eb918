"""Subjects as processors of flows, and the other way round."""

from __future__ import annotations

from typing import Generic, TypeVar, final

from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase, SubjectBase
from reactivex.subject import Subject
from typing_extensions import override

from flow_core import Flow, hooks
from flow_core.demand import UNBOUNDED
from flow_core.errors import none_given
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import CoreSubscriber, Processor, Publisher, Subscriber, Subscription
from flow_core.sources import EmitterSubscription, Overflow
from flow_core.subscribers import core_subscriber
from flow_rxcompat.rx.flows import check_publisher, connect_feed, make_feed
from flow_rxcompat.rx.observables import EmittingObserver, ObservableSource, check_strategy

__all__ = ["SubjectProcessor", "from_rx_subject", "to_rx_subject"]

T = TypeVar("T")


def from_rx_subject(
    subject: SubjectBase[T], *, strategy: Overflow = "buffer", capacity: int = UNBOUNDED
) -> SubjectProcessor[T]:
    """A subject as a processor: flows feed it, and its items are a flow.

    >>> import flow_core as flow
    >>> from reactivex.subject import ReplaySubject
    >>> numbers = from_rx_subject(ReplaySubject[int]())
    >>> flow.range(3).subscribe(numbers)
    >>> list(numbers.flow.map(str))
    ['0', '1', '2']

    Demand: everything is requested of the upstream, since a subject has no demand; the subscribers
    get what they request, and `strategy` applies to the rest, for each subscriber separately.
    Thread: that of the upstream, or the requester's. Fusion: see `from_rx`.
    Errors: the upstream's, as the same object. An error that an observer of the subject raises
    propagates out of ``on_next``, as in ReactiveX, and so ends the upstream.

    Args:
        subject: a subject of any kind.
        strategy: what happens to items that a subscriber has not requested; see `from_rx`.
        capacity: the most items that wait, at least 1, for each subscriber.

    Raises:
        TypeError: if `subject` is not a Subject, or `capacity` is not an int.
        ValueError: if `capacity` is less than 1, or there is no such strategy.
    """
    if not isinstance(subject, SubjectBase):
        raise TypeError(f"from_rx_subject() takes a subject of reactivex, not {subject!r}")
    check_strategy("from_rx_subject", strategy, capacity)
    return SubjectProcessor(subject, strategy, capacity)


@final
class SubjectProcessor(CoreSubscriber[T], Publisher[T], Scannable, Generic[T]):
    """The result of `from_rx_subject`.

    Args:
        subject: gets the items, and sends them to all subscribers.
        strategy: what happens to items that a subscriber has not requested.
        capacity: the most items that wait for one subscriber.
    """

    __slots__ = ("_done", "_source", "_subscription", "subject")

    def __init__(self, subject: SubjectBase[T], strategy: Overflow, capacity: int) -> None:
        self.subject = subject
        """The subject of this processor."""
        self._source = ObservableSource(subject, strategy, capacity, None)
        self._subscription: Subscription | None = None
        self._done = False

    @property
    def flow(self) -> Flow[T]:
        """The items of the subject, with the operators of a `Flow`."""
        return Flow(self)

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self._source.subscribe(subscriber)

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Take an upstream; items may be sent by hand as well."""
        if subscription is None:
            raise none_given("on_subscribe")
        if self._subscription is not None or self._done:
            subscription.cancel()  # §2.5
            return
        self._subscription = subscription
        subscription.request(UNBOUNDED)

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        if self._done:
            hooks.drop_item(item)
            return
        self.subject.on_next(item)

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        if self._done:
            hooks.drop_error(error)
            return
        self._done = True
        self._subscription = None
        # It is declared to take an Exception, and passes on whatever it gets.
        self.subject.on_error(error)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    @override
    def on_complete(self) -> None:
        if self._done:
            return
        self._done = True
        self._subscription = None
        self.subject.on_completed()

    @override
    def statistics(self) -> Statistics:
        return Statistics(
            operator=repr(self),
            requested=0 if self._subscription is None else UNBOUNDED,
            terminated=self._done,
            upstream=self._subscription,
        )

    def __repr__(self) -> str:
        return f"from_rx_subject({type(self.subject).__name__})"


def to_rx_subject(
    processor: Processor[T, T], *, strategy: Overflow = "buffer", capacity: int = UNBOUNDED
) -> Subject[T]:
    """A processor as a subject: observables feed it, and observers get its items.

    >>> from flow_multicast import BehaviorProcessor
    >>> degrees = to_rx_subject(BehaviorProcessor(19))
    >>> handle = degrees.subscribe(print)
    19
    >>> degrees.on_next(20)
    20

    Demand: observers request everything. `strategy` applies to items that are pushed before the
    processor requests them. Thread: the one that pushes, or the one on which the processor signals.
    Items that several threads push at once are put in order.
    Errors: the processor's, as the same object; see `to_rx`. ``dispose()`` cancels the subscription
    that the processor got; after that, the subject refuses further signals, as every subject does.

    Args:
        processor: a processor that has no upstream yet; the subject becomes its upstream.
        strategy: what becomes of pushed items that the processor has not requested; see `from_rx`.
        capacity: the most items that wait, at least 1.

    Raises:
        TypeError: if `processor` is not a processor, or `capacity` is not an int.
        ValueError: if `capacity` is less than 1, or there is no such strategy.
    """
    check_publisher("to_rx_subject", processor)
    if not callable(getattr(processor, "on_next", None)):
        raise TypeError(f"to_rx_subject() takes a processor, not {processor!r}")
    check_strategy("to_rx_subject", strategy, capacity)
    return ProcessorSubject(processor, strategy, capacity)


@final
class ProcessorSubject(Subject[T]):
    """The result of `to_rx_subject`: a `Subject` whose observers are subscribers of a processor.

    Args:
        processor: gets the items, and sends them to all.
        strategy: what happens to items that the processor has not requested.
        capacity: the most of these items that wait.
    """

    def __init__(self, processor: Processor[T, T], strategy: Overflow, capacity: int) -> None:
        super().__init__()
        self._processor = processor
        self._emitter = EmitterSubscription(
            core_subscriber(processor), strategy, capacity, f"to_rx_subject({processor!r})"
        )
        self._observer = EmittingObserver(self._emitter)
        self._emitter.start()

    def _subscribe_core(
        self, observer: ObserverBase[T], scheduler: SchedulerBase | None = None
    ) -> DisposableBase:
        self.check_disposed()
        # The demand is there at once, as items may be pushed before a scheduled action would run.
        return connect_feed(
            self._processor, make_feed(observer, None, UNBOUNDED), scheduler, now=True
        )

    def _on_next_core(self, value: T) -> None:
        self._observer.on_next(value)

    def _on_error_core(self, error: Exception) -> None:
        self.exception = error
        self._observer.on_error(error)

    def _on_completed_core(self) -> None:
        self._observer.on_completed()

    @override
    def dispose(self) -> None:
        super().dispose()
        self._emitter.cancel()
