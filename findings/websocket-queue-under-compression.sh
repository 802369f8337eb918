#!/usr/bin/env bash
# websockets 17.4: max_queue bounds nothing under the compression that is the default.
#
# A reader that stands still pauses the connection when 16 messages wait. But what one read of the
# socket has brought is unpacked whole, and of messages that pack well thousands fit into it. With
# compression=None about as many wait as were asked for.
# Seen: 1224 to 1280 messages of 64 KiB, and 20 without compression.
#
# Needs Python 3.11 or later, and a network for the packages.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet websockets==17.4
cd "$folder"
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { tail -n 20 "$folder/log"; exit 1; }
import asyncio
import logging

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

logging.disable(logging.CRITICAL)  # the sender is left in the middle


async def waiting(**settings):
    sent = 0

    async def give(socket):
        nonlocal sent
        for _ in range(2000):
            await socket.send("x" * 65536)
            sent += 1

    async with serve(give, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}", close_timeout=1, max_queue=16, **settings) as socket:
            await socket.recv()
            before = -1
            while sent != before:  # until the sender stands still, too
                before = sent
                await asyncio.sleep(0.5)
            return len(socket.recv_messages.frames)


packed, plain = asyncio.run(waiting()), asyncio.run(waiting(compression=None))
print(f"max_queue is 16: {packed} messages wait packed, {plain} without compression")
assert packed > 500
assert plain < 32
PYTHON
