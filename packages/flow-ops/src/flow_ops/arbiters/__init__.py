"""What hands the demand of one downstream from one source over to the next.

Three of them, by what they serialise:

* `ProducerArbiter`: the bookkeeping alone, with the calls to producers in a row.
* `SubscriptionArbiter`: the same for subscriptions, which can be cancelled, with less locking.
* `SwitchArbiter`: the bookkeeping together with the items, so that a source may be replaced at any
  time. The operators of `flow_ops.sequence` are made of it.
"""

from flow_ops.arbiters.producer_arbiter import Producer, ProducerArbiter
from flow_ops.arbiters.subscription_arbiter import SubscriptionArbiter
from flow_ops.arbiters.switch_arbiter import SwitchArbiter

__all__ = ["Producer", "ProducerArbiter", "SubscriptionArbiter", "SwitchArbiter"]
