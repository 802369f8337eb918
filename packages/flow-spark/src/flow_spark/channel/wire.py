"""The protocol between a task and the driver, byte by byte.

A connection begins with a challenge: the driver sends a nonce, the task answers with its identity
and a MAC over the nonce and the identity, so that the token itself never travels. Then the driver
sends how many items of the partition it has already (they are skipped), and frames follow, each
with its kind, its number of items and its length. ``END``, ``FAILED`` and ``CHANGED`` are answered
with one byte.

Each frame also says how much of its input the task has read by then, with a checksum of this input.
The driver sends the values of the last frame to a retry; the retry sends nothing until it has found
that its own input begins in the same way.

The end of a partition is a frame, never the end of the stream: a killed executor closes its sockets
just as a finished one does.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import secrets
import socket
import struct
from dataclasses import dataclass, field
from typing import Final

from flow_spark.errors import ChannelError

__all__ = [
    "COUNTS",
    "FRAME",
    "HELLO",
    "LONGEST_FRAME",
    "MAC_SIZE",
    "MAGIC",
    "NONCE_SIZE",
    "SOCKET_BUFFER",
    "WELCOME",
    "Answer",
    "Kind",
    "Target",
    "dial",
    "greet",
    "is_closed",
    "received",
    "sign",
    "tune",
]

MAGIC: Final = b"FLOWSPK2"
NONCE_SIZE: Final = 16
MAC_SIZE: Final = hashlib.sha256().digest_size

HELLO: Final = struct.Struct(">8s16sIQ")
"""Magic, query, partition, task attempt; a MAC follows."""

WELCOME: Final = struct.Struct(">BQQI")
"""An `Answer`, how many items to skip, how many batches of the input were read for these items, and
the checksum of the batches."""

FRAME: Final = struct.Struct(">BIQQI")
"""A `Kind`, the number of items, the number of bytes that follow, how many batches of the input
have been read, and their checksum."""

COUNTS: Final = struct.Struct(">QQ")
"""The body of ``END``: the number of all items of the partition, and of the batches of this
attempt."""

FEWER: Final = b"fewer"
"""The body of ``CHANGED`` if the rows so far are the same, but the rest is missing; otherwise the
body is empty."""

LONGEST_FRAME: Final = 2**31
"""The most bytes that may follow a frame's head; a longer one is not of this protocol."""

SOCKET_BUFFER: Final = 128 * 1024
"""The size, in bytes, of the kernel's buffer for each direction: a task may be that far ahead of
the driver."""


_REACHED_WITHIN_S: Final = 30.0
"""The time, in seconds, that the driver may take to answer: its machine may be busy."""


class Kind(enum.IntEnum):
    """The contents of a frame."""

    SCHEMA = 1
    ARROW = 2
    PICKLE = 3
    RECORDS = 4
    END = 5
    FAILED = 6
    CHANGED = 7


class Answer(enum.IntEnum):
    """The driver's answer to a hello, or to a frame."""

    ACCEPTED = 1
    FENCED = 2
    SHORTER = 3
    WRONG_COUNTS = 4


@dataclass(frozen=True, slots=True)
class Target:
    """The place where the tasks of one query connect, and the secrets that prove their identity."""

    host: str
    port: int
    query: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    token: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def derived(self, port: int, label: bytes) -> Target:
        """Return the target of another listener of the same driver.

        Its secrets can be computed on both sides.
        """
        query, token = (_mac(self.token, name + label) for name in (b"query ", b"token "))
        return Target(self.host, port, query[: len(self.query)], token)


def sign(token: bytes, nonce: bytes, hello: bytes) -> bytes:
    """Return the MAC that follows `hello`."""
    return _mac(token, nonce + hello)


def dial(target: Target, within_s: float | None = None) -> socket.socket:
    """Return a connection to the driver.

    Args:
        target: where the driver listens.
        within_s: how long the driver may take to answer, in seconds; None for half a minute.

    Raises:
        ChannelError: if the driver does not answer.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            target.host, target.port, type=socket.SOCK_STREAM
        )[0]
        connection = socket.socket(family, kind, protocol)
        try:
            # Before connect, which negotiates the window.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER)
            tune(connection)
            connection.settimeout(_REACHED_WITHIN_S if within_s is None else within_s)
            connection.connect(address)
            connection.settimeout(None)
        except BaseException:
            connection.close()
            raise
    except OSError as error:
        raise ChannelError(
            f"{socket.gethostname()} does not reach the driver at {target.host}:{target.port} "
            f"({error}). If the flow was not cancelled and its process runs, the address is wrong, "
            "or a firewall is between: every job listens at a free port of the driver. Set "
            "spark.flow.driver.host, in the settings of the session, to the name or address by "
            "which the executors reach the process of the flow"
        ) from error
    return connection


def greet(connection: socket.socket, target: Target, number: int, task: int) -> None:
    """Prove to the driver that this task belongs to the query, and identify the task.

    Raises:
        OSError: if the driver has closed the connection.
    """
    nonce = received(connection, NONCE_SIZE)
    hello = HELLO.pack(MAGIC, target.query, number, task)
    connection.sendall(hello + sign(target.token, nonce, hello))


def received(connection: socket.socket, size: int) -> bytes:
    """Return the next `size` bytes.

    Raises:
        OSError: if the other side has closed the connection.
    """
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionResetError("the other end has closed")
        parts += part
    return bytes(parts)


def is_closed(connection: socket.socket) -> bool:
    """Return whether the other side, which sends nothing now, has closed the connection."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def tune(sock: socket.socket) -> None:
    """Send small frames at once, and notice within a minute when the other machine has vanished."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()
