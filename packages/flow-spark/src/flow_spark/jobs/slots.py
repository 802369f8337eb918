"""The slots of a job: the job gives up slots that other jobs need, and reports if it gets none."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from flow_spark.channel.background_reader import BackgroundReader
from flow_spark.channel.backlog import Backlog
from flow_spark.channel.receiver import BatchReceiver
from flow_spark.errors import LimitExceededError
from flow_spark.jobs.cluster import BACKLOG_LIMIT, Cluster

__all__ = ["is_starved", "look_after_slots"]

_log: Final = logging.getLogger("flow.spark")


def look_after_slots(
    cluster: Cluster,
    receiver: BatchReceiver,
    backlog: Backlog,
    *,
    what: str,
    own: Callable[[], str],
    end: Callable[[], object] = bool,
    leave: Callable[[], bool] = bool,
) -> None:
    """Start a thread that looks after the slots of a job until the job has ended.

    Args:
        cluster: the cluster that the job runs on.
        receiver: reads the items of the job's tasks.
        backlog: the backlog of `receiver`.
        what: the name of the job, for messages.
        own: returns the tag or the group of the job in Spark.
        end: called when the job is given up, to end its tasks on the cluster.
        leave: lets the tasks leave until items are requested; returns False if they cannot leave.
    """

    def give_up() -> None:
        error = LimitExceededError(
            f"{what} was ended: its items were not requested for {receiver.silence_s():.0f} s, "
            f"other jobs waited for the slots of its tasks, and {backlog.size:,} bytes of its "
            f"items wait here, of {backlog.limit:,} that may ({BACKLOG_LIMIT}). Ways out:\n"
            "  - make less of it where the rows are (filter, take, fewer columns), or write() it "
            "and read that\n"
            "  - read it to its end, or cancel it, before other jobs start\n"
            "  - more cores for the session, or a larger limit"
        )
        if receiver.abandon(error):
            end()

    reader = BackgroundReader(
        receiver,
        lambda: cluster.others_wait(own()),
        give_up,
        leave=leave,
        starved=lambda: is_starved(cluster, own(), what),
    )
    threading.Thread(target=reader.run, name="flow-spark-reader", daemon=True).start()


def is_starved(cluster: Cluster, own: str, what: str) -> bool:
    """Log the holders of the slots if the jobs have got none; return whether to check again.

    Args:
        cluster: the cluster that the jobs run on.
        own: the tag or group of the jobs.
        what: the name of the jobs, for messages.
    """
    holders = cluster.holders(own)
    if holders is None:
        return True
    reason = f"all are held by {', '.join(holders)}"
    if not holders:
        reason = "the cluster has no executor for this session, or one that is too small"
    _log.warning("no task of %s has a slot yet: %s", what, reason)
    return False
