"""A process with a Java virtual machine, which verifies the subjects named on stdin.

Each line of stdin is one name. The process reports on its original stdout, in lines of JSON:
``{"started": test}``, ``{"repeated": test}``, ``{"ended": test, …}``, and ``{"done": name}`` after
the last test of a subject.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, Final, TextIO, assert_never, final

from flow_core import hooks
from flow_core.plugins import plugin_host
from flow_tck import threads
from flow_tck.bridge import Receiver, java_processor, java_publisher, java_subscriber, journal
from flow_tck.java import Java, implements, java_class, override, start
from flow_tck.subjects import (
    Probed,
    ProcessorSubject,
    PublisherSubject,
    Subject,
    SubscriberSubject,
    clean_up,
    subjects,
)

SUBJECT_LIMIT_S: Final = 180.0
"""A subject that takes longer has hung: the process prints all threads' stacks, and ends."""
CLOSE_LIMIT_S: Final = 60.0
"""The same limit for the threads of a process that has finished."""
SETTLE_MS: Final = 200
"""The time a publisher has to drop its references to a subscriber before the kit looks (§3.13)."""
POLL_MS: Final = 10
"""The interval at which the kit looks for an error that it waits for."""
UNLIMITED: Final = 2**63 - 2
"""The kit's number for a publisher of any number of items."""


@final
@implements("flow.tck.Subject")
class _Supply:
    """Supplies the kit with fresh objects of one subject."""

    def __init__(self, subject: Subject) -> None:
        self._subject: Any = subject  # Any: each kind of verification calls its own methods only

    @override
    def publisher(self, items: int) -> Java:
        return java_publisher(self._subject.make(int(items)), self._subject.receiver)

    @override
    def failed(self) -> Java:
        return java_publisher(self._subject.fail(), getattr(self._subject, "receiver", Receiver))

    @override
    def processor(self, buffer: int) -> Java:
        return java_processor(self._subject.make(int(buffer)))

    @override
    def subscriber(self) -> Java:
        return java_subscriber(self._subject.make())

    @override
    def probed(self, probe: Java) -> Java:
        return java_subscriber(self._subject.make(_KitProbe(probe)))


@final
class _KitProbe:
    """The kit's probe, as `subjects.Probe`."""

    def __init__(self, probe: Java) -> None:
        self._probe = probe
        self.on_next = probe.registerOnNext
        self.on_error = probe.registerOnError
        self.on_complete = probe.registerOnComplete

    def ready(self, request: Callable[[int], object], cancel: Callable[[], object]) -> None:
        """See `subjects.Probe`."""
        self._probe.registerOnSubscribe(_Puppet(request, cancel))


_WHITE_BOX: Final = "org.reactivestreams.tck.SubscriberWhiteboxVerification"


@final
@implements(f"{_WHITE_BOX}$SubscriberPuppet")
class _Puppet:
    """Lets the kit control a subscriber."""

    def __init__(self, request: Callable[[int], object], cancel: Callable[[], object]) -> None:
        self._request = request
        self._cancel = cancel

    @override
    def triggerRequest(self, n: int) -> None:  # noqa: N802 - Java's name
        self._request(int(n))

    @override
    def signalCancel(self) -> None:  # noqa: N802 - Java's name
        self._cancel()


@final
@implements("flow.tck.Report")
class _Report:
    """Writes the tests' events."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    @override
    def started(self, test: Java) -> None:
        journal.start()
        self.write(started=str(test))

    @override
    def repeated(self, test: Java) -> None:
        self.write(repeated=str(test))

    @override
    def ended(self, test: Java, status: Java, millis: int, message: Java, stack: Java) -> None:
        try:
            threads.settle()
        except Exception as error:
            journal.note("the end of the test", error)
            status = "failed"
        self.write(
            ended=str(test),
            status=str(status),
            millis=int(millis),
            message=str(message),
            stack=str(stack),
            trace=journal.text(),
        )

    def write(self, **event: object) -> None:
        """Write one line of JSON."""
        self._out.write(json.dumps(event) + "\n")
        self._out.flush()


def _verification(subject: Subject, timeout_ms: int, silence_ms: int) -> Java:
    environment = java_class("org.reactivestreams.tck.TestEnvironment")(
        timeout_ms, silence_ms, POLL_MS, False
    )
    ours = java_class("flow.tck.Verifications")
    supply = _Supply(subject)
    match subject:
        case PublisherSubject(most=most):
            most = UNLIMITED if most is None else most
            return ours.OfPublisher(environment, SETTLE_MS, supply, most)
        case ProcessorSubject(coordinated=coordinated, subscribers=subscribers):
            return ours.OfProcessor(environment, SETTLE_MS, supply, coordinated, subscribers)
        case SubscriberSubject():
            return ours.OfSubscriber(environment, supply)
        case Probed():
            return ours.OfProbedSubscriber(environment, supply)
        case _:
            assert_never(subject)


def main(classpath: str, timeout_ms: int, silence_ms: int) -> None:
    """Verify subjects until stdin ends."""
    # Java and Python may print; that must not mix with the lines of JSON.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    plugin_host()  # before Java changes what can be imported
    start(classpath.split(os.pathsep))
    hooks.dropped_errors.add("tck", lambda error: journal.note("a dropped error", error))
    everything = subjects()
    report = _Report(out)
    for line in sys.stdin:
        name = line.strip()
        faulthandler.dump_traceback_later(SUBJECT_LIMIT_S, exit=True)
        verification = _verification(everything[name], timeout_ms, silence_ms)
        java_class("flow.tck.Run").verify(verification, report)
        faulthandler.cancel_dump_traceback_later()
        report.write(done=name)
    faulthandler.dump_traceback_later(CLOSE_LIMIT_S, exit=True)
    threads.close()
    clean_up()
    out.close()


if __name__ == "__main__":
    status = 1
    try:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
        status = 0
    except BaseException as error:
        traceback.print_exception(error)
    finally:
        sys.stderr.flush()
        # All our threads have ended. There is no need to wait for the virtual machine's: in an
        # orderly shutdown they would wait for each other.
        os._exit(status)
