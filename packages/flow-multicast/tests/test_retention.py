"""What a processor keeps alive when its flow is over, or when a subscriber has left: nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.protocols import Subscriber
from flow_core.testing import ENDINGS, Ending, Payloads, assert_released
from flow_multicast import MulticastProcessor

UPSTREAMS: dict[str, Callable[[Payloads], Flow[Any]]] = {
    "iterable": flow.from_iterable,
    "hidden": lambda payloads: flow.from_iterable(payloads).hide(),
    "publisher": Payloads.pushed,
}


class Multicast:
    """A new processor for each subscriber, which is then fed by the upstream."""

    def __init__(self, upstream: Flow[Any], others: int, ref_count: bool) -> None:
        self.upstream = upstream
        self.others = others
        self.ref_count = ref_count

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        processor = MulticastProcessor[Any](prefetch=2, ref_count=self.ref_count)
        processor.subscribe(subscriber)
        for _ in range(self.others):
            processor.flow.subscribe(lambda _: None, lambda _: None)
        self.upstream.subscribe(processor)


KEEPS_FRAMES = pytest.mark.xfail(
    reason="the traceback that is kept with the error has frames that were running, and with them "
    "what they refer to"
)


def keeps_frames(upstream: str) -> bool:
    """Without fusion, there are none on Python 3.11."""
    return upstream != "hidden" or sys.version_info >= (3, 12)


def each_ending() -> list[Any]:
    return [
        pytest.param(
            upstream,
            ending,
            id=f"{upstream}-{ending.name}",
            marks=KEEPS_FRAMES if ending.fails and keeps_frames(upstream) else (),
        )
        for upstream in UPSTREAMS
        for ending in ENDINGS
    ]


@pytest.mark.parametrize(("upstream", "ending"), each_ending())
# Without others and without counting, what was not sent waits for the next subscriber.
@pytest.mark.parametrize(("others", "ref_count"), [(0, True), (2, True), (2, False)])
def test_a_multicast_processor_lets_go_of_everything(
    upstream: str, ending: Ending, others: int, ref_count: bool
) -> None:
    def make(payloads: Payloads) -> Flow[Any]:
        return Flow(Multicast(UPSTREAMS[upstream](payloads), others, ref_count))

    assert_released(make, keeps_error=True, only=lambda name: name == ending.name)
