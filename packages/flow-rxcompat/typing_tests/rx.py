"""What the type checkers must infer about the bridges to `reactivex`. Never run."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

import reactivex
from reactivex import ConnectableObservable, Observable
from reactivex import operators as ops
from reactivex.scheduler import NewThreadScheduler
from reactivex.subject import BehaviorSubject, ReplaySubject, Subject

import flow_core as flow
from flow_core import Flow, Operator
from flow_multicast import BehaviorProcessor, Connectable, DirectProcessor, publish
from flow_rxcompat.rx import (
    SubjectProcessor,
    from_rx,
    from_rx_connectable,
    from_rx_subject,
    rx,
    to_rx,
    to_rx_connectable,
    to_rx_subject,
    via_flow,
)

numbers = flow.range(3)
theirs: Observable[int] = reactivex.range(3)

# Observables and flows.
assert_type(from_rx(theirs), Flow[int])
assert_type(from_rx(theirs, strategy="latest", capacity=4).map(str), Flow[str])
assert_type(from_rx(Subject[int]()), Flow[int])
assert_type(from_rx(BehaviorSubject("a")), Flow[str])
assert_type(to_rx(numbers), Observable[int])
assert_type(to_rx(numbers.map(str), NewThreadScheduler(), prefetch=4), Observable[str])
assert_type(to_rx(numbers).map(lambda n: n / 2), Observable[float])
assert_type(from_rx(to_rx(numbers)), Flow[int])
from_rx(numbers)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - it is one already
from_rx(theirs, strategy="keep")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - no strategy
to_rx(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - no publisher

# Operators of theirs in a flow: lambdas are inferred, and so is what they make; by mypy, in the
# fluent form of theirs only, since an operator in an operator has two types to find out.
assert_type(numbers.pipe(rx(ops.pairwise())), Flow[tuple[int, int]])
assert_type(numbers.pipe(rx(ops.debounce(0.5))), Flow[int])
assert_type(numbers.pipe(rx(lambda theirs: theirs.map(lambda n: n / 2))), Flow[float])
assert_type(
    numbers.pipe(rx(lambda theirs: theirs.filter(lambda n: n > 1).map(lambda n: [n]))).map(len),
    Flow[int],
)
assert_type(
    numbers.pipe(rx(lambda items: items.pipe(ops.take(2), ops.pairwise()))), Flow[tuple[int, int]]
)


def doubled(items: Observable[int]) -> Observable[int]:
    return items


assert_type(rx(doubled), Operator[int, Flow[int]])
numbers.map(str).pipe(rx(doubled))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - of str


# Operators of ours in theirs.
def pairs(items: Flow[int]) -> Flow[tuple[int, int]]:
    return items.pairwise()


assert_type(via_flow(pairs), Callable[[Observable[int]], Observable[tuple[int, int]]])
assert_type(theirs.pipe(via_flow(pairs)), Observable[tuple[int, int]])
assert_type(theirs.pipe(via_flow(pairs), ops.take(1)), Observable[tuple[int, int]])
assert_type(theirs.pipe(via_flow(lambda items: items.map(str))), Observable[str])

# Subjects and processors.
assert_type(from_rx_subject(ReplaySubject[int]()), SubjectProcessor[int])
assert_type(from_rx_subject(Subject[int]()).flow, Flow[int])
assert_type(to_rx_subject(DirectProcessor[int]()), Subject[int])
assert_type(to_rx_subject(BehaviorProcessor(1)), Subject[int])

# Connectables.
connectable: ConnectableObservable[int] = ConnectableObservable(theirs, Subject[int]())
assert_type(from_rx_connectable(connectable), Connectable[int])
assert_type(from_rx_connectable(connectable).ref_count(), Flow[int])
assert_type(to_rx_connectable(numbers.pipe(publish())), ConnectableObservable[int])
from_rx_connectable(theirs)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - it has no connect
