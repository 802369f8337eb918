"""Arbiters: they hand the demand of one downstream over from one source to the next.

There are three, which serialise different things:

* `ProducerArbiter`: only the bookkeeping, with the calls to producers one after the other.
* `SubscriptionArbiter`: the same for subscriptions, which can be cancelled, with less locking.
* `SwitchArbiter`: the bookkeeping together with the items, so that a source may be replaced at any
  time. The operators of `flow_ops.sequence` are built on it.
"""

from flow_ops.arbiters.producer_arbiter import Producer, ProducerArbiter
from flow_ops.arbiters.subscription_arbiter import SubscriptionArbiter
from flow_ops.arbiters.switch_arbiter import SwitchArbiter

__all__ = ["Producer", "ProducerArbiter", "SubscriptionArbiter", "SwitchArbiter"]
