"""The `flow` command: list plugins, run a flow, and explain its structure.

`flow_cli.explain` draws a flow for programs and documents, `flow_cli.pipelines` loads flows that
are written as TOML, and `flow_cli.progress` shows the progress of a flow.
"""

from flow_cli._main import main

__all__ = ["main"]
