"""`flow explain` of flows whose parts are of several packages: what runs once is drawn once."""

from __future__ import annotations

import flow_core as flow
from flow_cli.explain import explain


def test_what_runs_once_for_several_subscribers_is_drawn_once() -> None:
    shared = flow.range(10).map(abs).share()
    both = shared.map(str).merge(shared.filter(bool).map(str))
    text = explain(both)
    assert text.count("source range(0, 10)") == 1
    assert text.count("the same share() as above") == 1
    connectable = flow.range(10).publish()
    text = explain(connectable.flow.zip(connectable.auto_connect(2), connectable.ref_count(2)))
    assert text.count("source range(0, 10)") == 1
    assert text.count("the same publish() as above") == 2


def test_two_runs_of_one_flow_are_drawn_twice() -> None:
    twice = flow.range(10).map(abs).hide()
    assert explain(twice.merge(twice)).count("source range(0, 10)") == 2


def test_a_chart_leads_from_the_shared_part_to_each_of_its_readers() -> None:
    shared = flow.range(10).share()
    lines = explain(shared.map(str).merge(shared.map(abs)), format="mermaid").splitlines()
    (share,) = (line.strip()[:2] for line in lines if "share()" in line)
    assert sum(f"{share} --> " in line for line in lines) == 2
