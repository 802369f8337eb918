"""Synchronous operators: templates of what happens to an item, compiled into one loop."""

from flow_core.stages.compiler import Form, Gate, Program, generated_source
from flow_core.stages.template import UNSET, Stage, Template, TemplateError

__all__ = [
    "UNSET",
    "Form",
    "Gate",
    "Program",
    "Stage",
    "Template",
    "TemplateError",
    "generated_source",
]
