"""What type checkers infer of the methods that other packages execute; never run.

These packages need not be installed for it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import assert_type

import flow_core as flow
from flow_core import Flow, Processor
from flow_core.connectable import Connectable

numbers = flow.range(3)


def multicast(one: Processor[int, str]) -> None:
    assert_type(numbers.publish(), Connectable[int])
    assert_type(numbers.publish(prefetch=4).ref_count(2).map(str), Flow[str])
    assert_type(numbers.publish(lambda shared: shared.map(str)), Flow[str])
    assert_type(numbers.publish(lambda shared: shared.map(lambda n: n / 2)), Flow[float])
    assert_type(numbers.publish_value(1), Connectable[int])
    assert_type(numbers.publish_value("none yet").flow, Flow[int | str])
    assert_type(numbers.replay(size=3, ttl=timedelta(minutes=1)), Connectable[int])
    assert_type(numbers.replay(lambda shared: shared.map(lambda n: n / 2), ttl=60), Flow[float])
    assert_type(numbers.share().map(lambda n: n / 2), Flow[float])
    assert_type(numbers.map(str).cache(size=2).map(lambda s: s.upper()), Flow[str])
    assert_type(numbers.multicast(one), Connectable[str])
    assert_type(numbers.multicast(lambda: one).auto_connect().map(len), Flow[int])


def mistakes() -> None:
    """Each line is one, and both checkers say so."""
    numbers.publish(prefetch="4")  # type: ignore[call-overload] # pyright: ignore[reportArgumentType]
    numbers.publish(4)  # type: ignore[call-overload] # pyright: ignore[reportArgumentType]
    numbers.publish().map(str)  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    numbers.replay(size="all")  # type: ignore[call-overload] # pyright: ignore[reportArgumentType]
    numbers.share(prefetch=None)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.share(4)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    numbers.cache(4)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    numbers.multicast(4)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.publish_value()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
