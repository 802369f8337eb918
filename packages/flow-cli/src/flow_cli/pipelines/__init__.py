"""Pipelines written as TOML: a source, operators, a sink and an engine, by their names.

>>> import pathlib, tempfile
>>> file = pathlib.Path(tempfile.mkdtemp(), "odd.toml")
>>> _ = file.write_text('''
... [parameters]
... stop = 10
...
... [source]
... use = "range"
... start = 1
... stop = { parameter = "stop" }
... step = 2
...
... [[operators]]
... use = "filter"
... predicate = { at_least = 5 }
... ''')
>>> list(load(file).flow())
[5, 7, 9]
>>> list(load(file, {"stop": 6}).flow())
[5]

All names are those under which plugins register objects (`flow plugins` lists them). A file
contains data only: the objects that it names are imported, and nothing in it is evaluated.
"""

from flow_cli.pipelines._document import PipelineError
from flow_cli.pipelines._pipeline import Pipeline, load

__all__ = ["Pipeline", "PipelineError", "load"]
