"""What the type checkers must infer about the arbiters. Never run."""

from __future__ import annotations

from typing import assert_type

import flow_core as flow
from flow_core import CoreSubscriber, Subscription
from flow_ops import ProducerArbiter, SubscriptionArbiter, SwitchArbiter
from flow_ops.arbiters import Producer


def account(
    producer: Producer, subscription: Subscription, subscriber: CoreSubscriber[int]
) -> None:
    producers = ProducerArbiter()
    producers.set(subscription)  # whatever can be asked for items
    producers.set(producer)
    producers.set(producers)
    producers.set(None)
    assert_type(producers.outstanding, int)

    subscriptions = SubscriptionArbiter(on_bad_request=subscriber.on_error)
    subscriptions.set(subscription)
    subscriber.on_subscribe(subscriptions)
    assert_type(subscriptions.unbounded, bool)

    switch = SwitchArbiter(subscriber)
    assert_type(switch, SwitchArbiter[int])
    switch.switch_to(flow.range(3))

    # Mistakes.
    producers.set(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    subscriptions.set(producer)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    switch.switch_to(flow.just("a"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
