"""What a test of a publisher, an operator or a subscriber needs. Works with any test runner."""

from flow_core.testing.cases import STAGE_CASES, StageCase
from flow_core.testing.drops import Drops, recorded_drops
from flow_core.testing.publisher import TestPublisher, Violation
from flow_core.testing.races import race
from flow_core.testing.results import DOWNSTREAMS, UPSTREAMS, Downstream, Upstream, assert_result
from flow_core.testing.subscriber import (
    TIMEOUT_S,
    ConditionalTestSubscriber,
    Signal,
    TestSubscriber,
)

__all__ = [
    "DOWNSTREAMS",
    "STAGE_CASES",
    "TIMEOUT_S",
    "UPSTREAMS",
    "ConditionalTestSubscriber",
    "Downstream",
    "Drops",
    "Signal",
    "StageCase",
    "TestPublisher",
    "TestSubscriber",
    "Upstream",
    "Violation",
    "assert_result",
    "race",
    "recorded_drops",
]
