"""The differences that the report takes for a failure."""

from __future__ import annotations

import pytest

from flow_oracle.compare import Oracle
from flow_oracle.report import Report

CASE = ("core", ("pipe", ("just", 1), ("take", 1)), ("demand", 1, 0, 0, "cancel"))
RIGHT = ["subscribed", "request 1", "next 1", "complete", "cancel"]
WRONG = ["subscribed", "request 1", "next 2", "complete", "cancel"]


def concluded(total, drawn, here=RIGHT, wanted=("take",)):
    oracle = Oracle(lambda case: here, lambda case: RIGHT)
    with Report(oracle, total) as report:
        for _ in range(drawn):
            report.check(CASE)
    return report.conclude(wanted)


def test_all_is_well_if_as_many_as_were_asked_for_come_to_the_same():
    assert concluded(3, 3) == 0


@pytest.mark.parametrize("drawn", [0, 2])
def test_it_fails_if_fewer_pipelines_were_drawn(drawn, capsys):
    assert concluded(3, drawn, wanted=()) == 1
    assert f"3 pipelines were asked for, {drawn} were drawn" in capsys.readouterr().out


def test_it_fails_if_one_differs():
    assert concluded(1, 1, here=WRONG) == 1


def test_it_fails_if_an_operator_was_not_drawn(capsys):
    assert concluded(1, 1, wanted=("take", "skip")) == 1
    assert "never drawn: skip" in capsys.readouterr().out
