"""The sources of a streaming DataFrame, in a text that is the same in every process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from flow_spark.jobs.frames import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["described", "reads"]

_FILES: Final = ("avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml")

_TELLING: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_FILES, ("path",)),
    "flow-spool": ("spool",),
    "kafka": ("assign", "subscribe", "subscribepattern"),
    "rate": (),
    "rate-micro-batch": (),
    "socket": ("host", "port"),
}
"""The options of a known format that identify a source; others may change between two runs."""

_SECRET: Final = re.compile(r"auth|credential|jaas|key|passw|secret|token|user", re.IGNORECASE)
_LOGIN: Final = re.compile(r"//[^/@\s]*@")


def reads(df: DataFrame) -> list[str]:
    """Return the streams that `df` is made of, each by its format and source; without secrets.

    The result does not depend on the stages for the rows, nor on the tables that they are joined
    with.
    """
    found = _of_connect(df) if is_connect(df.sparkSession) else _of_classic(df)
    return list(dict.fromkeys(found))


def described(form: str, options: Mapping[str, str]) -> str:
    """Describe one stream.

    Args:
        form: its format.
        options: its options. The result has those that say what a known format reads; for another
            format it has all of them, except those whose names say that they are secret.
    """
    form = form.lower()
    given = {key.lower(): value for key, value in options.items()}
    telling = _TELLING.get(form)
    if telling is None:
        telling = tuple(key for key in sorted(given) if not _SECRET.search(key))
    said = [f"{key}={_LOGIN.sub('//', given[key])}" for key in telling if key in given]
    return " ".join([form, *said])


# Any: objects of the JVM and messages of protobuf, which have no types.


def _of_classic(df: DataFrame) -> Iterator[str]:
    frame: Any = cast("Any", df)._jdf
    leaves: Any = frame.queryExecution().analyzed().collectLeaves()
    for number in range(leaves.size()):
        leaf: Any = leaves.apply(number)
        if not leaf.isStreaming():
            continue
        kind: str = leaf.getClass().getSimpleName()
        if kind == "StreamingRelation":
            source: Any = leaf.dataSource()
            jvm: Any = cast("Any", df.sparkSession)._jvm
            given = dict(jvm.scala.jdk.javaapi.CollectionConverters.asJava(source.options()))
            yield described(source.className(), given)
        elif kind == "StreamingRelationV2":
            yield described(leaf.sourceName(), dict(leaf.extraOptions().asCaseSensitiveMap()))
        else:
            yield kind


def _of_connect(df: DataFrame) -> Iterator[str]:
    frame: Any = df
    for read in _messages(frame._plan.to_proto(frame._session.client), "spark.connect.Read"):
        if not read.is_streaming:
            continue
        if read.HasField("data_source"):
            source = read.data_source
            given = dict(source.options)
            if source.paths:
                given["path"] = ",".join(source.paths)
            yield described(source.format, given)
        else:
            yield f"table {read.named_table.unparsed_identifier}"


def _messages(message: Any, name: str) -> Iterator[Any]:
    """Yield the messages of a type within `message`, in order."""
    if message.DESCRIPTOR.full_name == name:
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        parts = [value] if hasattr(value, "ListFields") else value
        for part in parts:
            yield from _messages(part, name)
