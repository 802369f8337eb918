"""The errors between a flow and Spark, each a class below `FlowError`."""

from __future__ import annotations

from flow_core.errors import FlowError

__all__ = [
    "ChannelError",
    "CheckpointConflictError",
    "LimitExceededError",
    "NoJavaError",
    "NotPicklableError",
    "OrderedOperatorError",
    "PartitionChangedError",
    "RemoteError",
    "RemoteTracebackError",
    "SchemaMismatchError",
    "SessionConflictError",
    "SessionStartError",
    "SparkJobError",
    "SpoolError",
    "UnsupportedPlatformError",
    "UnsupportedTypeError",
]


class NoJavaError(FlowError, RuntimeError):
    """No Java runtime that Spark can use was found.

    The text lists the places that were searched.
    """


class SessionStartError(FlowError, RuntimeError):
    """The JVM or the Spark session in it did not start; the text ends with its output."""


class CheckpointConflictError(FlowError, RuntimeError):
    """A checkpoint belongs to another flow; the text says what differs."""


class SessionConflictError(FlowError, RuntimeError):
    """A session does not fit: another one runs already, or the given one lacks something."""


class NotPicklableError(FlowError, TypeError):
    """An object that has to run on Spark cannot be sent there; the text names the culprit."""


class OrderedOperatorError(FlowError):
    """A stage depends on the order of all items, which a cluster does not have.

    The text lists ways out.
    """


class SchemaMismatchError(FlowError, TypeError):
    """An item does not fit the schema; the text names the item and the field.

    Attributes:
        item_index: the position of the item, from 0, within its source or partition.
        field: the name of the column.
    """

    def __init__(self, message: str, *, item_index: int = -1, field: str = "") -> None:
        super().__init__(message)
        self.item_index = item_index
        self.field = field


class UnsupportedPlatformError(FlowError, RuntimeError):
    """This system lacks what flow-spark needs to end processes; the text lists it."""


class UnsupportedTypeError(FlowError, TypeError):
    """A Python or Arrow type without a counterpart in a Spark schema."""


class ChannelError(FlowError, RuntimeError):
    """The channel between the tasks and the driver is broken or closed."""


class PartitionChangedError(ChannelError):
    """A retried partition gave fewer items than were delivered before, or read other rows.

    A retry resumes where the previous attempt has stopped. So a partition has to give the same
    items in the same order each time.
    """


class SparkJobError(FlowError, RuntimeError):
    """The Spark job behind a flow failed, and not because of a function of the flow."""


class RemoteError(FlowError, RuntimeError):
    """Stands for an exception of a task that cannot be pickled.

    Attributes:
        type_name: the qualified name of the original class.
        message: the text of the original exception.
        traceback_text: the traceback of the original exception, as printed on the executor.
    """

    def __init__(self, type_name: str, message: str, traceback_text: str) -> None:
        super().__init__(
            f"{type_name}: {message}\n(a function raised this on Spark; the original exception "
            "object cannot be pickled, so this one gives one instead)"
        )
        self.type_name = type_name
        self.message = message
        self.traceback_text = traceback_text

    def __reduce__(self) -> tuple[type[RemoteError], tuple[str, str, str]]:
        """Pickle this error by its three attributes."""
        return RemoteError, (self.type_name, self.message, self.traceback_text)


class RemoteTracebackError(FlowError):
    """The cause of an exception that came from a task: the traceback of the task, as text."""

    def __init__(self, partition: int, task: int, text: str) -> None:
        super().__init__(f"raised on Spark in partition {partition} (task {task})\n\n{text}")
        self.partition = partition
        self.task = task
        self.text = text

    def __reduce__(self) -> tuple[type[RemoteTracebackError], tuple[int, int, str]]:
        """Pickle this error by its three arguments."""
        return RemoteTracebackError, (self.partition, self.task, self.text)


class LimitExceededError(FlowError, ValueError):
    """A flow held in memory has more items than allowed, or an item is too large to send."""


class SpoolError(FlowError, RuntimeError):
    """The folder between a flow and Spark is missing, in use, or belongs to another flow."""
