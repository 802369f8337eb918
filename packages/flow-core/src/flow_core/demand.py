"""The arithmetic of demand: how many more items a subscriber allows."""

from __future__ import annotations

from typing import Final

__all__ = ["UNBOUNDED", "add_demand", "bad_request", "check_prefetch", "replenish_limit"]

UNBOUNDED: Final = 2**63 - 1
"""The demand that never runs out (§3.17); greater sums are cut to this number."""

DEFAULT_PREFETCH: Final = 128


def add_demand(outstanding: int, n: int) -> int:
    """Return ``outstanding + n``, but at most `UNBOUNDED`.

    Python's ints never overflow.

    Args:
        outstanding: items that were requested and have not come yet.
        n: items that are requested now.
    """
    return min(outstanding + n, UNBOUNDED)


def bad_request(n: int) -> ValueError | None:
    """Return the error to signal for ``request(n)``; None if `n` is a valid demand.

    Raises:
        TypeError: if `n` is not an int.
    """
    if not isinstance(n, int) or n is True or n is False:
        raise TypeError(f"request(n) takes an int >= 1, not {n!r}")
    if n > 0:
        return None
    return ValueError(
        f"§3.9 violated: non-positive subscription request: request({n}); ask for at least 1"
    )


def check_prefetch(prefetch: int, name: str = "prefetch") -> int:
    """Return `prefetch` itself, after checking that it is an int of at least 1.

    Args:
        prefetch: a number of items.
        name: the name of the parameter, for the error's message.

    Raises:
        TypeError: if `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    if not isinstance(prefetch, int) or isinstance(prefetch, bool):
        raise TypeError(f"{name} takes an int >= 1, not {prefetch!r}")
    if prefetch < 1:
        raise ValueError(f"{name} must be at least 1 item, not {prefetch}")
    return prefetch


def replenish_limit(prefetch: int) -> int:
    """Return the number of items to request at a time: 75 % of `prefetch`, at least 1."""
    return prefetch - (prefetch >> 2)
