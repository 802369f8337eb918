"""Synchronous operators: templates of what happens to an item, compiled into one loop.

What is true of every stage, unless its own documentation says otherwise:

Demand: a stage that makes one item or none of each passes requests on, and an item that it drops is
asked for again, or answered by False to a conditional upstream. One that gives nothing before the
end requests everything. One that makes several items of one, or some of its own, asks for 128 items
ahead and refills at 75 %. None requests more than it can use (`take`).
Thread: an item passes on the thread that brings it; what had to wait for demand, on the one that
requests. A stage starts no thread and waits for none.
Fusion: SYNC with what is an iterator, and ASYNC too where an item becomes one or none and nothing
happens at the end. Both across threads only if no function of the user is called (F39).
Errors: what a user's function raises fails the flow with that very object, and the upstream is
cancelled. A None from it is a NoneItemError (§2.13). A count that is no int is a TypeError, and one
that is too small a ValueError, where the stage is put into the flow.
"""

from flow_core.stages.compiler import Form, Gate, Program, generated_source
from flow_core.stages.sink import SingleSink
from flow_core.stages.template import UNSET, Stage, Template, TemplateError
from flow_core.stages.translation import Translation

__all__ = [
    "UNSET",
    "Form",
    "Gate",
    "Program",
    "SingleSink",
    "Stage",
    "Template",
    "TemplateError",
    "Translation",
    "generated_source",
]
