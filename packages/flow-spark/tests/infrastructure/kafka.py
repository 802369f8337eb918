"""A Kafka broker, and the source by which Spark reads from it."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import uuid

from .jars import Dependency, fetched
from .processes import Server, ServerError, wait_until
from .runtime import FAST, Runtime

__all__ = ["KafkaBroker", "source_jars"]

BROKER: tuple[Dependency, ...] = (
    ("org.apache.kafka", "kafka_2.13", "4.3.1", True),
    ("org.slf4j", "slf4j-simple", "1.7.36", False),
)

SOURCE: tuple[Dependency, ...] = (
    # The newest pair in the registry. The source of Spark 4.3 is not there, nor is a token
    # provider later than 4.0; Spark itself loads the latter only where Kerberos is used.
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0", False),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0", False),
    ("org.apache.kafka", "kafka-clients", "3.9.2", False),
    ("org.apache.commons", "commons-pool2", "2.13.1", False),
)

ATTEMPTS = 3
START_TIMEOUT_S = 90.0

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""


def source_jars(runtime: Runtime) -> str:
    """Spark's Kafka source, as the setting ``spark.jars`` wants it."""
    return ",".join(map(str, fetched(runtime, "kafka-source", SOURCE)))


class KafkaBroker:
    """One broker that is its own controller (KRaft), with topics of two partitions.

    Args:
        runtime: what to run.

    Attributes:
        servers: what clients call ``bootstrap.servers``.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        jars = fetched(runtime, "kafka-broker", BROKER)
        self._java = [
            str(runtime.java_home / "bin" / "java"),
            *("-Xmx256m", *FAST.split(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"),
            *("-cp", os.pathsep.join(map(str, jars))),
        ]
        for attempt in range(1, ATTEMPTS + 1):
            # Between finding free ports and their use, somebody else may take them.
            try:
                self.servers = self._start(attempt)
            except ServerError:
                if attempt == ATTEMPTS:
                    raise
            else:
                return

    def topic(self) -> str:
        """A name that no other test uses; the broker makes a topic when it is first used."""
        return f"topic-{uuid.uuid4().hex[:8]}"

    def stop(self) -> None:
        """End it. Idempotent."""
        self._server.stop()

    def _start(self, attempt: int) -> str:
        folder = self._runtime.folder / f"kafka-{attempt}"
        folder.mkdir()
        port, controller = _free_ports()
        properties = folder / "server.properties"
        properties.write_text(
            PROPERTIES.format(port=port, controller=controller, data=folder / "data")
        )
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        subprocess.run(
            [
                *(*self._java, "kafka.tools.StorageTool"),
                *("format", "--cluster-id", f"A{cluster[1:]}", "--config", str(properties)),
            ],
            check=True,
            capture_output=True,
            timeout=START_TIMEOUT_S,
        )
        self._server = Server(
            f"broker-{attempt}",
            [*self._java, "kafka.Kafka", str(properties)],
            self._runtime.folder,
            self._runtime.variables(),
        )
        listens = wait_until(lambda: _listens(port) or not self._server.runs(), START_TIMEOUT_S)
        if not listens or not self._server.runs():
            self.stop()
            raise ServerError(f"the broker did not start. It printed:\n{self._server.text()}")
        return f"127.0.0.1:{port}"


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        sock.settimeout(1)
        return sock.connect_ex(("127.0.0.1", port)) == 0
