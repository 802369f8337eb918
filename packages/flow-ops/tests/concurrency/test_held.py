"""In debug mode, a coroutine for an item that holds its event loop for long is named."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import flow_core as flow
from flow_core import hooks

HELD_S = 0.02


async def load(number: int) -> int:
    await asyncio.sleep(0)
    time.sleep(HELD_S)  # as a client does that was not written for asyncio
    return number


def asks(number: int) -> Any:
    return load(number)


@pytest.mark.parametrize("function", [load, asks])
@pytest.mark.parametrize("options", [{}, {"retry": 3, "timeout": 9}], ids=["plain", "tried"])
@pytest.mark.parametrize("debugging", [True, False])
def test_a_coroutine_that_holds_the_loop_is_named(
    function: Any, options: dict[str, Any], debugging: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> list[int]:
        asyncio.get_running_loop().slow_callback_duration = HELD_S / 2
        return await flow.just(1, 2).map_concurrent(function, 2, **options).to_list()

    with hooks.debug(on=debugging):
        assert asyncio.run(main()) == [1, 2]
    said = [record.getMessage() for record in caplog.records if record.name == "flow"]
    assert len(said) == (2 if debugging else 0)
    for message in said:
        assert message.startswith(f"map_concurrent({function.__name__}, 2")
        assert "test_held.py:" in message
        assert "held the event loop for 0.0" in message
