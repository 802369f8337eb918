"""A separate class, a function that makes a flow from it, and a sink."""

import sys

import flow_core
from flow_core import Flow, Operator


class Ledger(dict[str, int]):
    """Amounts by account. The core alone would treat it as a dict, and emit its keys."""


BOOK = Ledger(rent=3, food=4)


def entries(ledger: Ledger) -> Flow[int]:
    """Return a flow of the amounts."""
    return flow_core.from_iterable(ledger.values())


def tally(label: str = "sum") -> Operator[int, int]:
    """Add up the items, and print the sum."""

    def run(flow: Flow[int]) -> int:
        total = sum(flow)
        sys.stdout.write(f"{label}: {total}\n")
        return total

    return Operator("tally", run, repr(label))
