"""Settings of Sphinx for the site; `pages.py` beside it gathers the pages.

The site is read without a network: no page asks another host for anything.
"""

from __future__ import annotations

import inspect
import re
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Any, Final

from sphinx.util.nodes import make_refnode

if TYPE_CHECKING:
    from docutils.nodes import Element, TextElement
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

project = "Flow"
author = "the authors of Flow"
copyright = "2026, the authors of Flow"  # noqa: A001 (the name that Sphinx reads)
release = version = version_of("flow-core")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # the details of benchmarks begin with small headings
default_role = "py:obj"
highlight_language = "python"

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": True}
python_use_unqualified_type_names = True
python_display_short_literal_types = True
python_maximum_signature_line_length = 80
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "Flow"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}

_LEAD: Final = re.compile(r"(?:^|(?<=\.) )(Demand|Threads?|Errors|Fusion): ")
_CODE: Final = re.compile(r"(?<![`:])`([A-Za-z_]\w*)`(?!`)")


def set_off(
    _app: Sphinx, _what: str, _name: str, thing: object, _options: object, lines: list[str]
) -> None:
    """Give demand, threads and errors a paragraph each, and make parameters no links.

    A parameter may be called like an operator, `count` for instance.
    """
    own = _parameters(thing)

    def code(found: re.Match[str]) -> str:
        return f"``{found[1]}``" if found[1] in own else found[0]

    made: list[str] = []
    rules = 0
    for line in lines:
        rules += line.startswith("====")
        if rules % 3:  # within a table, whose columns have a width
            made.append(line)
        elif line.startswith(" "):
            made.append(_CODE.sub(code, line))
        else:
            made += _LEAD.sub(r"\n\n**\1**: ", _CODE.sub(code, line)).split("\n")
    lines[:] = made


def _parameters(thing: object) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(thing).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return frozenset()


def found_by_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, text: TextElement
) -> Element | None:
    """Return a link for a public name that stands without its module, such as `Clock` or `map`."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target:
        return None
    domain: Any = env.get_domain("py")
    found = [name for name in domain.objects if name.endswith(f".{target}")]
    if "." not in target:  # members of other classes have many names
        found = [name for name in found if _is_public(name)]
    if not found:
        return None
    found.sort(key=lambda name: (not name.startswith("flow_core.flow.Flow."), len(name), name))
    entry = domain.objects[found[0]]
    source = node.get("refdoc", env.docname)
    return make_refnode(app.builder, source, entry.docname, entry.node_id, text)


def _is_public(name: str) -> bool:
    """Return whether `name` is that of an operator, or of what a module has."""
    holder = name.split(".")[-2]
    return holder == "Flow" or holder.islower()


def setup(app: Sphinx) -> None:
    """Connect the functions of this module."""
    app.connect("autodoc-process-docstring", set_off)
    app.connect("missing-reference", found_by_name)
