"""Secrets do not show: what settings, addresses and messages say of them is replaced."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

__all__ = ["is_redacted", "redacted", "redacted_setting", "without_secrets_of"]

_HIDDEN: Final = "***"

_SECRET: Final = (
    r"(?:secret|passwd|password|passphrase|pwd|token|credential|jaas"
    r"|(?:access|account|api|private)[._-]?key)"
)
"""What the names of secrets have in them, as for ``spark.redaction.regex``."""

_NAMED: Final = re.compile(
    rf"""((?:[\w.%-]*{_SECRET}[\w.-]*|\bsig)(?:\s*=\s*|["']\s*:\s*))  # name= or "name":
    (?!\*\*\*)(?:"[^"]*"|'[^']*'|[^\s;&,'")\]}}]+)""",
    re.IGNORECASE | re.VERBOSE,
)
_LOGIN: Final = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_HARMLESS: Final = frozenset(["use_ssl"])


def redacted(text: str) -> str:
    """`text` without the logins in its URLs, and without what stands behind names of secrets."""
    return _NAMED.sub(rf"\1{_HIDDEN}", _LOGIN.sub(_HIDDEN, text))


def is_redacted(text: str) -> bool:
    """Whether `redacted` leaves something out of `text`."""
    return redacted(text) != text


def redacted_setting(key: str, value: object) -> str:
    """A setting as ``key=value``; without the value if that is a secret by its name."""
    if re.search(_SECRET, key, re.IGNORECASE):
        return f"{key}={_HIDDEN}"
    return f"{key}={redacted(str(value))}"


def without_secrets_of(remote: str, text: str) -> str:
    """`text` without what the parameters of the address of a Spark Connect server say.

    Args:
        remote: the address, ``sc://host:port/;name=value;…``.
        text: what may quote it, or parts of it.
    """
    _, *parameters = remote.split(";")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() in _HARMLESS:
            continue
        for secret in {value, unquote(value)} - {""}:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", _HIDDEN, text)
    return redacted(text)
