"""Finds the objects of installed packages by name: operators, sources, sinks, engines and so on.

A plugin is a module that is announced in the entry-point group ``flow``. Its hooks yield records::

    from flow_core.plugins import OperatorSpec, hookimpl


    @hookimpl
    def flow_operators():
        yield OperatorSpec("every", "my_package:every", summary="Each n-th item.")

A record only names its object, so listing the records imports no object. Nothing is scanned before
the first call of `plugin_host`.
"""

from flow_core.plugins.hookspecs import GROUP, hookimpl
from flow_core.plugins.host import Plugin, PluginHost, Problem, Registered, plugin_host
from flow_core.plugins.records import (
    OBJECT,
    Backpressure,
    ClockSpec,
    ConverterSpec,
    DisplaySpec,
    EngineSpec,
    ExecutorSpec,
    Kind,
    NamespaceSpec,
    OperatorSpec,
    Placement,
    SinkSpec,
    SourceSpec,
    Spec,
    Thread,
    TranslationSpec,
    load_object,
)

__all__ = [
    "GROUP",
    "OBJECT",
    "Backpressure",
    "ClockSpec",
    "ConverterSpec",
    "DisplaySpec",
    "EngineSpec",
    "ExecutorSpec",
    "Kind",
    "NamespaceSpec",
    "OperatorSpec",
    "Placement",
    "Plugin",
    "PluginHost",
    "Problem",
    "Registered",
    "SinkSpec",
    "SourceSpec",
    "Spec",
    "Thread",
    "TranslationSpec",
    "hookimpl",
    "load_object",
    "plugin_host",
]
