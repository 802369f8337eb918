"""Helpers for tests of publishers, operators and subscribers, with any test runner."""

from flow_testing.bad_sources import (
    BAD_SOURCES,
    BadSource,
    LateError,
    Misbehaving,
    check_bad_source,
)
from flow_testing.cases import STAGE_CASES, OperatorCase, StageCase, Surroundings
from flow_testing.drops import Drops, recorded_drops
from flow_testing.marbles import (
    MarbleError,
    Marbles,
    MarbleSignal,
    MarbleSource,
    assert_marbles,
    cold,
    hot,
    parse_marbles,
    record_signals,
    to_marbles,
)
from flow_testing.publisher import PublisherProbe, TestPublisher, Violation
from flow_testing.races import race
from flow_testing.results import DOWNSTREAMS, UPSTREAMS, Downstream, Upstream, assert_result
from flow_testing.retention import (
    ENDINGS,
    Ending,
    Payload,
    PayloadError,
    Payloads,
    assert_released,
)
from flow_testing.subscriber import (
    TIMEOUT_S,
    ConditionalTestSubscriber,
    Signal,
    TestSubscriber,
    observe,
)
from flow_testing.virtual_clock import HastyClock, VirtualClock

__all__ = [
    "BAD_SOURCES",
    "DOWNSTREAMS",
    "ENDINGS",
    "STAGE_CASES",
    "TIMEOUT_S",
    "UPSTREAMS",
    "BadSource",
    "ConditionalTestSubscriber",
    "Downstream",
    "Drops",
    "Ending",
    "HastyClock",
    "LateError",
    "MarbleError",
    "MarbleSignal",
    "MarbleSource",
    "Marbles",
    "Misbehaving",
    "OperatorCase",
    "Payload",
    "PayloadError",
    "Payloads",
    "PublisherProbe",
    "Signal",
    "StageCase",
    "Surroundings",
    "TestPublisher",
    "TestSubscriber",
    "Upstream",
    "Violation",
    "VirtualClock",
    "assert_marbles",
    "assert_released",
    "assert_result",
    "check_bad_source",
    "cold",
    "hot",
    "observe",
    "parse_marbles",
    "race",
    "record_signals",
    "recorded_drops",
    "to_marbles",
]
