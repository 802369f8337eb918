"""Loads a pipeline's file as the target of a command; its parameters are options."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path

from flow_cli._arguments import prepare
from flow_cli._errors import UsageError, did_you_mean
from flow_cli.pipelines import Pipeline, PipelineError
from flow_cli.pipelines._document import MISSING, Document, read
from flow_cli.pipelines._pipeline import load_document
from flow_core.engine import OPTIONS

__all__ = ["is_pipeline", "load"]


def is_pipeline(target: str) -> bool:
    """Return True if a target is a pipeline's file, and not an object of a program."""
    return target.endswith(".toml")


def load(options: argparse.Namespace, given: Sequence[str]) -> Pipeline:
    """Return the pipeline, with the user's values for its parameters.

    If the user has not set an option of the engine, it is set in `options` from the file.

    Args:
        options: the options of the command: ``target``, ``on``, ``master`` and ``remote``.
        given: ``--name value`` for each parameter of the pipeline that is set.

    Raises:
        UsageError: if there is no such file, or if something in the file or in `given` is wrong.
        SystemExit: for ``--help``, which prints the parameters.
    """
    path = Path(options.target)
    try:
        document = read(path)
        call = prepare(_taker(document), path.name, given, shown=path.name)
        with_engine = options.on is None
        pipeline = load_document(document, call.options, with_engine=with_engine)
    except FileNotFoundError as error:
        raise UsageError(_no_file(path)) from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except PipelineError as error:
        raise UsageError(str(error)) from error
    if with_engine:
        options.on = pipeline.engine
        for name in OPTIONS:
            wanted = getattr(options, name) or getattr(pipeline.engine_options, name)
            setattr(options, name, wanted)
    return pipeline


def _taker(document: Document) -> Callable[..., None]:
    """Return a function with the pipeline's parameters; only its signature is used."""

    def take(**values: object) -> None: ...

    take.__doc__ = "\n".join(
        [
            document.description,
            *(f"  --{one.name}: {one.help}" for one in document.parameters.values() if one.help),
        ]
    )
    take.__dict__["__signature__"] = inspect.Signature(
        [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if one.default is MISSING else one.default,
                annotation=one.kind,
            )
            for one in document.parameters.values()
        ]
    )
    return take


def _no_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder}, and so no file {path}"
    near = did_you_mean(path.name, [other.name for other in folder.glob("*.toml")])
    return f"there is no file {path}{near}"
