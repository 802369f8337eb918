"""Draws cases, and passes them on."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from flow_oracle.language import Node

__all__ = ["sample"]


def sample(
    strategy: SearchStrategy[Node], count: int, number: int, check: Callable[[Node], None]
) -> None:
    """Call `check` with up to `count` different cases.

    Args:
        strategy: the strategy that they are drawn from.
        count: the number of cases; fewer if there are no more.
        number: a seed; the same number draws the same cases.
        check: receives each case; an error that it raises ends the draw.
    """

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(case: Node) -> None:
        check(case)

    draw()
