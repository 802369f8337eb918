"""What type checkers infer of processors; checked by mypy and pyright, never run."""

from __future__ import annotations

from typing import assert_type

import flow_core as flow
from flow_core import Empty, Flow, Processor, Publisher, QueueSubscription, Subscriber
from flow_core.introspection import Statistics
from flow_core.subscribers import CallbackSubscriber
from flow_multicast import (
    AsyncProcessor,
    BehaviorProcessor,
    DirectProcessor,
    EmitResult,
    MulticastProcessor,
    ReplayProcessor,
    SerializedProcessor,
    Sink,
    UnicastProcessor,
    serialized,
)


class Animal:
    name = "animal"


class Cat(Animal):
    lives = 9


def takes_publisher(publisher: Publisher[Animal]) -> None: ...


def takes_subscriber(subscriber: Subscriber[Cat]) -> None: ...


def takes_processor(processor: Processor[int, int]) -> None: ...


def roles() -> None:
    """It is a processor: both a publisher and a subscriber of one and the same type (M03)."""
    takes_processor(MulticastProcessor[int]())
    takes_processor(MulticastProcessor())
    takes_publisher(MulticastProcessor[Cat]())
    takes_subscriber(MulticastProcessor[Animal]())
    takes_processor(MulticastProcessor[str]())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    takes_subscriber(MulticastProcessor[int]())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    takes_publisher(MulticastProcessor[int]())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def flows() -> None:
    processor = MulticastProcessor[int](16, ref_count=True)
    assert_type(processor, MulticastProcessor[int])
    assert_type(processor.flow, Flow[int])
    assert_type(Flow(processor), Flow[int])
    assert_type(flow.from_publisher(processor), Flow[int])
    assert_type(processor.flow.map(lambda n: n / 2), Flow[float])
    assert_type(processor.flow.subscribe(lambda n: print(n + 1)), CallbackSubscriber[int])
    assert_type(flow.range(3).subscribe(processor), None)
    flow.just("a").subscribe(processor)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]


def by_hand(processor: MulticastProcessor[Animal]) -> None:
    assert_type(processor.offer(Cat()), bool)
    processor.on_next(Cat())
    processor.on_next("cat")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(processor.has_subscribers, bool)


def statistics(processor: MulticastProcessor[int]) -> None:
    seen = processor.statistics()
    assert_type(seen, Statistics)
    assert_type(seen.requested, int | None)
    assert_type(seen.held_back_by, tuple[object, ...])
    seen.requested = 1  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    MulticastProcessor[int]("128")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    MulticastProcessor[int](128, True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def takes_queue(queue: QueueSubscription[Animal]) -> None: ...


def unicast(processor: UnicastProcessor[Cat]) -> None:
    """It is a processor, and the queue that its subscriber may poll."""
    takes_processor(UnicastProcessor[int]())
    takes_publisher(processor)
    takes_subscriber(UnicastProcessor[Animal]())
    takes_queue(processor)
    assert_type(UnicastProcessor[int](16, delay_error=False), UnicastProcessor[int])
    assert_type(UnicastProcessor[int](on_terminate=lambda: print()), UnicastProcessor[int])
    assert_type(processor.flow.map(lambda cat: cat.lives), Flow[int])
    assert_type(processor.offer(Cat()), bool)
    assert_type(processor.poll(), Cat | Empty)
    assert_type(processor.statistics(), Statistics)
    assert_type(flow.just(Cat()).subscribe(processor), None)
    processor.offer("cat")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    processor.on_next(Animal())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    takes_subscriber(UnicastProcessor[int]())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    takes_queue(UnicastProcessor[int]())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    UnicastProcessor[int]("128")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    UnicastProcessor[int](128, False)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def hot(level: BehaviorProcessor[int]) -> None:
    takes_processor(DirectProcessor[int]())
    takes_processor(AsyncProcessor())
    takes_processor(ReplayProcessor[int](16, ttl=2.5))
    takes_publisher(DirectProcessor[Cat]())
    takes_subscriber(ReplayProcessor[Animal]())
    assert_type(BehaviorProcessor(1), BehaviorProcessor[int])
    assert_type(level.value, int | None)
    assert_type(level.flow, Flow[int])
    assert_type(level.offer(1), bool)
    assert_type(level.statistics(), Statistics)
    level.on_next("high")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    takes_processor(DirectProcessor[str]())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ReplayProcessor[int](ttl="1 s")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def fronts() -> None:
    processor = serialized(DirectProcessor[int](), capacity=16)
    assert_type(processor, SerializedProcessor[int])
    assert_type(serialized(MulticastProcessor[str]()), SerializedProcessor[str])
    assert_type(serialized(UnicastProcessor[str]()).flow, Flow[str])
    takes_processor(processor)
    assert_type(processor.offer(1), bool)
    assert_type(Sink(ReplayProcessor[int]()).try_next(1), EmitResult)
    processor.on_next("one")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
