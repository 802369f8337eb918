"""`observe_on` keeps the rules though its source does not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from flow_ops import observe_on
from flow_testing import BAD_SOURCES, BadSource, VirtualClock, check_bad_source

pytestmark = pytest.mark.usefixtures("dropped")  # which the check looks at itself

each_bad_source = pytest.mark.parametrize("bad", BAD_SOURCES, ids=lambda bad: bad.name)


@each_bad_source
@pytest.mark.parametrize("delay_error", [True, False])
def test_inline_it_keeps_the_rules_behind_a_bad_source(bad: BadSource, delay_error: bool) -> None:
    check_bad_source(
        lambda source: source.pipe(
            observe_on(lambda task: task(), prefetch=4, delay_error=delay_error)
        ),
        bounded=True,
        only=lambda name: name == bad.name,
    )


@each_bad_source
def test_on_a_pool_it_keeps_the_rules_behind_a_bad_source(bad: BadSource) -> None:
    with ThreadPoolExecutor(1) as pool:
        check_bad_source(
            lambda source: source.pipe(observe_on(pool, prefetch=4)),
            bounded=True,
            settle=lambda: pool.submit(int).result(),
            only=lambda name: name == bad.name,
        )


@each_bad_source
def test_on_a_clock_it_keeps_the_rules_behind_a_bad_source(bad: BadSource) -> None:
    """All that the source does is done before the executor gets to work."""
    if bad.name == "two threads at once":
        return  # the downstream is called by the clock only
    clock = VirtualClock()
    check_bad_source(
        lambda source: source.pipe(observe_on(clock, prefetch=4)),
        bounded=True,
        settle=clock.run,
        only=lambda name: name == bad.name,
    )
