"""One flow for many subscribers. Hops between threads are in `bench_ops.py`."""

from __future__ import annotations

from collections.abc import Callable

import flow_core as flow
from flow_multicast import MulticastProcessor
from rounds import Case, compare

SHARED = 50_000


def shared_by_loop(subscribers: int) -> Callable[[], int]:
    def run() -> int:
        totals = [0] * subscribers

        def callback(index: int) -> Callable[[int], None]:
            def on_next(n: int) -> None:
                totals[index] += n

            return on_next

        callbacks = [callback(index) for index in range(subscribers)]
        for n in range(SHARED * 16 // subscribers):
            for on_next in callbacks:
                on_next(n)
        return sum(totals)

    return run


def shared_by_processor(subscribers: int) -> Callable[[], int]:
    def run() -> int:
        totals = [0] * subscribers

        def callback(index: int) -> Callable[[int], None]:
            def on_next(n: int) -> None:
                totals[index] += n

            return on_next

        processor: MulticastProcessor[int] = MulticastProcessor(128)
        published = processor.flow
        for index in range(subscribers):
            published.subscribe(callback(index))
        flow.range(SHARED * 16 // subscribers).subscribe(processor)
        return sum(totals)

    return run


def main() -> None:
    for subscribers in (1, 4, 16, 1_000):
        compare(
            f"One flow, {subscribers:,} subscribers: per item and subscriber",
            Case("a loop over callbacks", shared_by_loop(subscribers)),
            Case(
                "MulticastProcessor",
                shared_by_processor(subscribers),
                2.0 if subscribers == 16 else None,
            ),
            items=SHARED * 16,
        )


if __name__ == "__main__":
    main()
