"""Processors are links of a flow, and `report` understands what they tell of themselves."""

from __future__ import annotations

from flow_core import Flow
from flow_core.introspection import Scannable, links, report
from flow_multicast import MulticastProcessor, UnicastProcessor


def test_a_unicast_processor_is_the_last_link_of_what_it_feeds() -> None:
    processor = UnicastProcessor[int](4)
    for n in range(4):
        assert processor.offer(n)
    handle = Flow(processor).map(str).subscribe(prefetch=8)
    subscriber, stages, last = links(handle)
    assert (subscriber.requested, stages.requested) == (4, 4)
    assert last.operator == "UnicastProcessor(capacity=4)"
    assert (last.requested, last.buffered, last.capacity) == (4, 0, 4)
    processor.on_complete()
    assert next(links(processor)).terminated


def test_a_multicast_processor_reports_its_waiting_items() -> None:
    processor = MulticastProcessor[int](8)
    assert isinstance(processor, Scannable)
    quick = Flow(processor).subscribe()
    slow = Flow(processor).map(str).subscribe(prefetch=2)
    (only,) = links(processor)
    assert (only.requested, only.capacity) == (2, 8)
    assert "MulticastProcessor" in report(processor)
    assert [each.operator for each in links(slow)][:2] == ["subscriber", "map(str)"]
    quick.dispose()
    slow.dispose()
