"""Redaction: secrets in settings, addresses and messages are replaced."""

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
"""Parts of the names of secrets, as for ``spark.redaction.regex``."""

_NAMED: Final = re.compile(
    rf"""((?:[\w.%-]*{_SECRET}[\w.-]*|\bsig)(?:\s*=\s*|["']\s*:\s*))  # name= or "name":
    (?!\*\*\*)(?:"[^"]*"|'[^']*'|[^\s;&,'")\]}}]+)""",
    re.IGNORECASE | re.VERBOSE,
)
_LOGIN: Final = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_HARMLESS: Final = frozenset(["use_ssl"])


def redacted(text: str) -> str:
    """Return `text` without logins in URLs, and without the values that follow names of secrets."""
    return _NAMED.sub(rf"\1{_HIDDEN}", _LOGIN.sub(_HIDDEN, text))


def is_redacted(text: str) -> bool:
    """Return whether `redacted` leaves something out of `text`."""
    return redacted(text) != text


def redacted_setting(key: str, value: object) -> str:
    """Return a setting as ``key=value``; without the value if its name says that it is a secret."""
    if re.search(_SECRET, key, re.IGNORECASE):
        return f"{key}={_HIDDEN}"
    return f"{key}={redacted(str(value))}"


def without_secrets_of(remote: str, text: str) -> str:
    """Return `text` without the values of parameters in the address of a Spark Connect server.

    Args:
        remote: the address, ``sc://host:port/;name=value;…``.
        text: a text that may quote it, or parts of it.
    """
    _, *parameters = remote.split(";")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() in _HARMLESS:
            continue
        for secret in {value, unquote(value)} - {""}:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", _HIDDEN, text)
    return redacted(text)
