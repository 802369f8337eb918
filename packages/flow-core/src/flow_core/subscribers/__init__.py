"""Where a flow ends: callbacks, blocking and asynchronous iteration, the guard for foreigners."""

from flow_core.subscribers.callbacks import CallbackSubscriber
from flow_core.subscribers.strict import StrictSubscriber, core_subscriber

__all__ = ["CallbackSubscriber", "StrictSubscriber", "core_subscriber"]
