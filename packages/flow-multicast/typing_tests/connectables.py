"""What the type checkers must infer about connectables and processors. Never run."""

from __future__ import annotations

from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_core.introspection import Statistics
from flow_core.protocols import Disposable
from flow_multicast import (
    AsyncProcessor,
    BehaviorProcessor,
    Connectable,
    DirectProcessor,
    EmitResult,
    MulticastProcessor,
    ReplayProcessor,
    Sink,
    cache,
    multicast,
    publish,
    publish_value,
    replay,
    share,
)

numbers = flow.range(3)

# Connectables, and the flows that they become.
assert_type(numbers.pipe(publish()), Connectable[int])
assert_type(numbers.pipe(publish(prefetch=4)).flow, Flow[int])
assert_type(numbers.pipe(publish()).ref_count(2, grace=1.5), Flow[int])
assert_type(numbers.pipe(publish()).auto_connect(2), Flow[int])
assert_type(numbers.pipe(publish()).connect(), Disposable)
assert_type(numbers.pipe(publish()).statistics(), Statistics)
assert_type(numbers.pipe(publish()).statistics().waiting, tuple[object, ...])
assert_type(numbers.pipe(publish()).auto_connect(2, lambda c: c.dispose()), Flow[int])
assert_type(numbers.pipe(replay(size=3)), Connectable[int])
assert_type(numbers.pipe(publish_value(1)), Connectable[int])
assert_type(numbers.pipe(share()).map(lambda n: n / 2), Flow[float])
assert_type(numbers.map(str).pipe(cache(size=2)), Flow[str])

# Selectors: lambdas are inferred, and so is what they make.
assert_type(numbers.pipe(publish(lambda shared: shared.map(lambda n: str(n)))), Flow[str])
assert_type(numbers.pipe(publish(lambda shared: shared.take(5))), Flow[int])
assert_type(numbers.pipe(replay(lambda shared: shared.map(lambda n: n / 2), ttl=60)), Flow[float])

# Processors, given as one or as what makes one.
assert_type(numbers.pipe(multicast(DirectProcessor[int]())), Connectable[int])
assert_type(numbers.pipe(multicast(lambda: ReplayProcessor[int](2))), Connectable[int])
assert_type(numbers.pipe(multicast(MulticastProcessor[int])), Connectable[int])
assert_type(BehaviorProcessor("a").flow, Flow[str])
assert_type(BehaviorProcessor("a").value, str | None)
assert_type(AsyncProcessor[bytes]().flow, Flow[bytes])
assert_type(Sink(BehaviorProcessor(1)).try_next(2), EmitResult)


# An operator of one's own.
def shared_text() -> Operator[int, Flow[str]]:
    return publish(lambda items: items.map(lambda n: str(n)))


assert_type(numbers.pipe(shared_text()), Flow[str])

# Mistakes.
publish(prefetch="8")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
numbers.pipe(publish(lambda shared: shared.map(lambda n: n.upper())))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownLambdaType, reportUnknownMemberType]
Sink(BehaviorProcessor(1)).try_next("a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
numbers.pipe(publish()).map(str)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
