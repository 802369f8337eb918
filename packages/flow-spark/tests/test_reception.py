"""Strangers at the port of a query: each costs little, and keeps no task out."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from flow_spark.channel import reception
from flow_spark.channel.handover import BatchListener, Handover
from flow_spark.channel.reception import Reception
from flow_spark.channel.wire import HELLO, MAGIC, NONCE_SIZE, Target, sign

HOST = "127.0.0.1"
TIMEOUT_S = 20.0


class Clock:
    """The time of the module; it stands still until a test says otherwise."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(reception, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reception, "_most_strangers", lambda: 4)


@pytest.fixture
def sockets() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def opened() -> Iterator[Reception[str]]:
    made: Reception[str] = Reception(HOST)
    yield made
    made.close()


def connected(sockets: ExitStack, port: int) -> socket.socket:
    """Connect, and say nothing."""
    return sockets.enter_context(socket.create_connection((HOST, port), TIMEOUT_S))


def prove(sock: socket.socket, target: Target, task: int) -> None:
    """Send the task's identity and its proof, as a task does; the nonce has to be there."""
    nonce = sock.recv(NONCE_SIZE, socket.MSG_WAITALL)
    hello = HELLO.pack(MAGIC, target.query, 0, task)
    sock.sendall(hello + sign(target.token, nonce, hello))


def wait_until(there: Reception[str], met: Callable[[], object]) -> None:
    """Wait there until a condition is met; the system brings connections and bytes in time."""
    for _ in range(int(TIMEOUT_S * 100)):
        if met():
            return
        there.wait(0.01)
    pytest.fail("it was never met")


def is_closed(sock: socket.socket) -> bool:
    """Return whether nothing follows the nonce, which a stranger has got."""
    try:
        return sock.recv(NONCE_SIZE, socket.MSG_WAITALL) == b"" or sock.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.usefixtures("few")
def test_when_there_are_many_the_first_goes_but_not_at_once(
    opened: Reception[str], clock: Clock, sockets: ExitStack
) -> None:
    silent = [connected(sockets, opened.port) for _ in range(4)]
    wait_until(opened, lambda: len(opened._strangers) == 4)
    late = connected(sockets, opened.port)
    for _ in range(10):
        opened.wait(0.01)
    assert len(opened._strangers) == 4
    assert opened.rejected == 0

    clock.now += 0.25
    wait_until(opened, lambda: opened.rejected)
    prove(late, opened.target, 7)
    wait_until(opened, lambda: opened.guests)

    assert is_closed(silent[0])
    assert opened.rejected == 1
    assert opened.guests[0].task == 7


@pytest.mark.usefixtures("few")
def test_silent_strangers_do_not_keep_a_task_out(
    opened: Reception[str], sockets: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reception, "_GRACE_S", 0.001)
    monkeypatch.setattr(reception, "_HELLO_WITHIN_S", 10 * TIMEOUT_S)
    for _ in range(40):
        connected(sockets, opened.port)
    task = connected(sockets, opened.port)
    with ThreadPoolExecutor() as pool:
        proving = pool.submit(prove, task, opened.target, 7)
        wait_until(opened, lambda: opened.guests)
        proving.result(TIMEOUT_S)

    assert opened.guests[0].task == 7
    assert len(opened._strangers) <= 4


def test_a_connection_that_is_silent_for_long_is_closed(
    opened: Reception[str], clock: Clock, sockets: ExitStack
) -> None:
    silent = connected(sockets, opened.port)
    wait_until(opened, lambda: opened._strangers)
    clock.now += 10
    opened.wait(0)

    assert opened.rejected == 1
    assert is_closed(silent)


def test_a_connection_that_sends_a_little_now_and_then_is_closed_too(
    opened: Reception[str], clock: Clock, sockets: ExitStack
) -> None:
    slow = connected(sockets, opened.port)
    wait_until(opened, lambda: opened._strangers)
    for _ in range(10):
        slow.sendall(b"x")
        clock.now += 1
        opened.wait(0.01)

    assert opened.rejected == 1


def test_a_task_that_answered_while_no_thread_waited_is_accepted_however_late(
    opened: Reception[str], clock: Clock, sockets: ExitStack
) -> None:
    """A subscriber that asks for nothing waits for nothing either."""
    task = connected(sockets, opened.port)
    wait_until(opened, lambda: opened._strangers)
    prove(task, opened.target, 7)
    clock.now += 3600
    wait_until(opened, lambda: not opened._strangers)

    assert [guest.task for guest in opened.guests] == [7]


def test_an_accept_that_fails_is_tried_again_after_a_moment(
    clock: Clock,
    sockets: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tried: list[float] = []

    class Full(socket.socket):
        def accept(self) -> tuple[socket.socket, object]:
            tried.append(clock.now)
            if len(tried) <= 2:
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    real = reception._listening
    monkeypatch.setattr(reception, "_listening", lambda host: Full(fileno=real(host).detach()))
    there: Reception[str] = Reception(HOST)
    sockets.callback(there.close)
    task = connected(sockets, there.port)
    wait_until(there, lambda: tried)
    for _ in range(5):
        there.wait(0.01)
    assert len(tried) == 1

    clock.now += 0.1
    wait_until(there, lambda: len(tried) == 2)
    clock.now += 0.1
    wait_until(there, lambda: there._strangers)
    prove(task, there.target, 7)
    wait_until(there, lambda: there.guests)

    assert caplog.text.count("Too many open files") == 1


def test_a_socket_that_the_owner_registers_is_given_when_it_can_be_read(
    opened: Reception[str], sockets: ExitStack
) -> None:
    one, other = map(sockets.enter_context, socket.socketpair())
    opened.register(one, "mine")
    other.sendall(b"x")

    assert opened.wait(TIMEOUT_S) == ["mine"]
    opened.unregister(one)
    assert opened.wait(0) == []


def test_closing_lets_go_of_guests_and_strangers(sockets: ExitStack) -> None:
    there: Reception[str] = Reception(HOST)
    guest, stranger = connected(sockets, there.port), connected(sockets, there.port)
    wait_until(there, lambda: len(there._strangers) == 2)
    prove(guest, there.target, 7)
    wait_until(there, lambda: there.guests)
    there.close()
    there.close()
    there.wake()

    assert is_closed(stranger)
    assert guest.recv(1) == b""


def test_silent_strangers_do_not_hold_up_a_micro_batch(
    sockets: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reception, "_HELLO_WITHIN_S", 10 * TIMEOUT_S)
    listener = BatchListener(HOST, HOST)
    sockets.callback(listener.close)
    for _ in range(3):
        connected(sockets, listener.target.port)
    with ThreadPoolExecutor() as pool:
        query = pool.submit(Handover, listener.target, 5)
        line = pool.submit(listener.next_line).result(TIMEOUT_S)
        assert line is not None
        assert line.batch_id == 5
        line.start(1)
        query.result(TIMEOUT_S).close()
        line.close()


def test_micro_batches_that_come_at_once_are_all_taken() -> None:
    listener = BatchListener(HOST, HOST)
    with ThreadPoolExecutor() as pool:
        queries = [pool.submit(Handover, listener.target, number) for number in range(3)]
        lines = [pool.submit(listener.next_line).result(TIMEOUT_S) for _ in queries]
        for line in lines:
            assert line is not None
            line.start(1)
            line.close()
        for query in queries:
            query.result(TIMEOUT_S).close()
    listener.close()

    assert sorted(line.batch_id for line in lines if line is not None) == [0, 1, 2]
