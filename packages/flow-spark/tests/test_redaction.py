"""Secrets in addresses, settings and options are in no message."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from flow_spark import SparkJobError, engine, session
from flow_spark.driver import reach
from flow_spark.errors import SessionConflictError, SessionStartError
from flow_spark.jobs.redaction import redacted, redacted_setting, without_secrets_of
from flow_spark.jobs.run import explained

MARK = "Zk7-MARK"

REMOTES = [
    f"sc://127.0.0.1:1/;token={MARK}",
    f"sc://127.0.0.1:1/;use_ssl=true;token={MARK};x-header={MARK}2",
    f"sc://127.0.0.1:1/;user_id=me;x-api={MARK}",
    f"sc://me:{MARK}@127.0.0.1:1/",
    f"sc://127.0.0.1:1/{MARK};token={MARK}",
    f"sc://127.0.0.1:1/;token={MARK};no",
    f"sc://127.0.0.1:1/;token=a%20{MARK}",
]
NAMES = [
    "password",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.access.key",
    "spark.hadoop.fs.azure.account.key.store.blob",
    "spark.kafka.sasl.jaas.config",
    "spark.ssl.keyStorePassword",
    "spark.my.token",
    "spark.credentials",
    "spark.api-key",
    "sfPrivate_Key",
]
QUOTING: list[Callable[[str, str], str]] = [
    lambda name, value: f"{name}={value}",
    lambda name, value: f"{name} = {value}, and more",
    lambda name, value: f"{name}='{value} {value}'",
    lambda name, value: f'the options are {{"{name}": "{value}", "n": 1}}',
    lambda name, value: f"{{'{name}': '{value}'}}",
    lambda name, value: f"jdbc:postgresql://db:5432/x?user=me&{name}={value}&ssl=true",
    lambda name, value: f"jdbc:sqlserver://db:1433;user=me;{name}={value};encrypt=true",
    lambda name, value: f"cannot read (s3a://b?{name}={value})",
]


def told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def remotes() -> Iterator[str]:
    for remote in REMOTES:
        yield remote
        yield remote.replace("127.0.0.1:1", "flow.invalid")
        yield remote.replace("sc://", "http://")
        yield remote.replace("127.0.0.1:1", "127.0.0.1:port")


@pytest.mark.parametrize("remote", list(remotes()))
@pytest.mark.parametrize("asked_first", [True, False])
def test_no_message_of_a_session_shows_what_its_address_hides(
    remote: str,
    asked_first: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pytest.importorskip("zstandard")  # of a client

    def refused(*_: object) -> object:
        raise ValueError(f"a server would not say: {remote}")

    if not asked_first:
        monkeypatch.setattr(reach, "_try", lambda *_: None)
        monkeypatch.setattr(SparkSession.Builder, "create", refused)
    caplog.set_level(logging.DEBUG, "flow")

    with pytest.raises(SessionStartError) as caught, session(remote=remote):
        pass

    assert "no session at" in str(caught.value)
    assert MARK not in told(caught.value)
    assert MARK not in caplog.text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quoted", QUOTING)
def test_a_value_is_left_out_by_its_name(name: str, quoted: Callable[[str, str], str]) -> None:
    text = quoted(name, MARK)
    assert MARK not in redacted(text)
    assert name in redacted(text)
    assert MARK not in str(redacted_setting(name, MARK))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quoted", QUOTING)
def test_no_error_of_a_job_shows_a_secret(name: str, quoted: Callable[[str, str], str]) -> None:
    from pyspark.errors import PySparkRuntimeError

    error = explained(PySparkRuntimeError(f"failed: {quoted(name, MARK)}"), "the job")
    assert isinstance(error, SparkJobError)
    assert MARK not in told(error)


@pytest.mark.parametrize(
    "text",
    [
        "Invalid token: unexpected end",
        "the password is wrong",
        "map(key=1)",
        "https://host/path?page=2",
        "design=1",
    ],
)
def test_text_that_is_not_a_secret_stays(text: str) -> None:
    assert redacted(text) == text


def test_the_open_part_of_an_address_stays() -> None:
    shown = without_secrets_of("sc://h:15002/;use_ssl=true;token=a", "sc://h:15002/;use_ssl=true")
    assert shown == "sc://h:15002/;use_ssl=true"


@pytest.mark.spark
def test_a_conflict_of_settings_shows_no_secret(spark: SparkSession) -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": MARK, "spark.my.url": f"https://me:{MARK}@host"}
    shown = r"secret\.key=\*\*\*"
    with pytest.raises(SessionConflictError, match=shown) as caught, session(conf=conf):
        pass
    assert MARK not in told(caught.value)


def test_an_engine_says_where_it_is_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[object]:
        yield SimpleNamespace(version="4.3.0")

    monkeypatch.setattr(engine, "session", opened)
    remote = f"sc://host:1/;token={MARK}"
    options: Any = SimpleNamespace(master=None, remote=remote, name="n", brief=True, spool=None)

    with engine.spark_engine(options) as made:
        assert made.facts == {"master": "sc://host:1/;token=***", "version": "4.3.0"}
