"""A class of its own, what makes a flow of it, and a sink."""

import sys

import flow_core
from flow_core import Flow, Operator


class Ledger(dict[str, int]):
    """Amounts by account. The core alone would take it for a dict, and give its keys."""


BOOK = Ledger(rent=3, food=4)


def entries(ledger: Ledger) -> Flow[int]:
    """The amounts."""
    return flow_core.from_iterable(ledger.values())


def tally(label: str = "sum") -> Operator[int, int]:
    """Adds the items up, and prints the sum."""

    def run(flow: Flow[int]) -> int:
        total = sum(flow)
        sys.stdout.write(f"{label}: {total}\n")
        return total

    return Operator("tally", run, repr(label))
