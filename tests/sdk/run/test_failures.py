"""What errors mean: builtin ones by class, those of libraries by name, without importing them."""

import asyncio
import json
import logging
import sqlite3
import urllib.error
from email.message import Message
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from kagzi.core.error_details import ErrorKind
from kagzi.core.errors import InternalError, NonRetryable, NotFound, RetryAfter, StepError
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.error_kinds import kind_of
from kagzi.sdk.workflow.retry import Retry

from .fake import fake_server


def library_error(name: str, base: type[Exception] = Exception, **facts: Any) -> Exception:
    """An error as the library would raise it: `httpx.ReadTimeout`, for example."""
    module, _, own = name.rpartition(".")
    error: Exception = type(own, (base,), {"__module__": module})("x")
    for fact, value in facts.items():
        setattr(error, fact, value)
    return error


def status(code: int) -> SimpleNamespace:
    return SimpleNamespace(status_code=code)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), ErrorKind.TIMEOUT),
        (asyncio.CancelledError(), ErrorKind.CANCELLED),
        (ConnectionResetError(), ErrorKind.TRANSIENT),
        (FileNotFoundError(), ErrorKind.PERMANENT),
        (ValueError(), ErrorKind.PERMANENT),
        (RuntimeError(), ErrorKind.TRANSIENT),
        (NonRetryable("no"), ErrorKind.PERMANENT),
        (RetryAfter("later", "5s"), ErrorKind.TRANSIENT),
        (library_error("httpx.TimeoutException"), ErrorKind.TIMEOUT),
        (library_error("httpx.TransportError"), ErrorKind.TRANSIENT),
        (library_error("httpx.HTTPStatusError", response=status(404)), ErrorKind.PERMANENT),
        (library_error("httpx.HTTPStatusError", response=status(429)), ErrorKind.TRANSIENT),
        (library_error("httpx.HTTPStatusError", response=status(503)), ErrorKind.TRANSIENT),
        (library_error("httpx.HTTPStatusError", response=status(504)), ErrorKind.TIMEOUT),
        (library_error("requests.exceptions.Timeout", OSError), ErrorKind.TIMEOUT),
        (library_error("requests.exceptions.HTTPError", OSError, response=status(400)), ErrorKind.PERMANENT),
        (library_error("requests.exceptions.InvalidURL", ValueError), ErrorKind.PERMANENT),
        (library_error("aiohttp.client_exceptions.ClientResponseError", status=500), ErrorKind.TRANSIENT),
        (library_error("aiohttp.client_exceptions.ClientResponseError", status=403), ErrorKind.PERMANENT),
        (library_error("asyncpg.exceptions.IntegrityConstraintViolationError"), ErrorKind.PERMANENT),
        (library_error("psycopg.OperationalError"), ErrorKind.TRANSIENT),
        (library_error("psycopg.errors.QueryCanceled"), ErrorKind.TIMEOUT),
        (ConnectionRefusedError(), ErrorKind.TRANSIENT),
        (OSError("disk"), ErrorKind.TRANSIENT),
        (PermissionError(), ErrorKind.PERMANENT),
        (KeyError("x"), ErrorKind.PERMANENT),
        (IndexError(), ErrorKind.PERMANENT),
        (ZeroDivisionError(), ErrorKind.PERMANENT),
        (AssertionError(), ErrorKind.PERMANENT),
        (NotImplementedError(), ErrorKind.PERMANENT),
        (ModuleNotFoundError(), ErrorKind.PERMANENT),
        (RecursionError(), ErrorKind.TRANSIENT),
        (json.JSONDecodeError("cut", "{", 1), ErrorKind.TRANSIENT),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "cut"), ErrorKind.TRANSIENT),
        (UnicodeEncodeError("ascii", "\u20ac", 0, 1, "no"), ErrorKind.PERMANENT),
        (urllib.error.HTTPError("http://x", 404, "no", Message(), None), ErrorKind.PERMANENT),
        (urllib.error.HTTPError("http://x", 503, "no", Message(), None), ErrorKind.TRANSIENT),
        (library_error("httpx.HTTPStatusError", response=status(408)), ErrorKind.TIMEOUT),
        (library_error("httpx.HTTPStatusError", response=status(425)), ErrorKind.TRANSIENT),
        (library_error("openai.BadRequestError", status_code=400), ErrorKind.PERMANENT),
        (library_error("grpc.aio.AioRpcError", code=lambda: grpc.StatusCode.NOT_FOUND), ErrorKind.PERMANENT),
        (library_error("grpc.aio.AioRpcError", code=lambda: grpc.StatusCode.UNAVAILABLE), ErrorKind.TRANSIENT),
        (library_error("grpc.aio.AioRpcError", code=lambda: grpc.StatusCode.DEADLINE_EXCEEDED), ErrorKind.TIMEOUT),
        (sqlite3.IntegrityError(), ErrorKind.PERMANENT),
        (sqlite3.OperationalError("locked"), ErrorKind.TRANSIENT),
        (ExceptionGroup("both", [ValueError(), KeyError()]), ErrorKind.PERMANENT),
        (ExceptionGroup("both", [ValueError(), OSError()]), ErrorKind.TRANSIENT),
        (NotFound("run x"), ErrorKind.PERMANENT),
        (InternalError("incident"), ErrorKind.TRANSIENT),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, BaseException) else str(each),
)
def test_the_kind_of_an_error(error: BaseException, kind: ErrorKind) -> None:
    assert kind_of(error) is kind


def test_subclasses_of_library_errors_are_known_by_their_bases() -> None:
    base = type(library_error("httpx.TimeoutException"))
    assert kind_of(library_error("httpx.ReadTimeout", base)) is ErrorKind.TIMEOUT


async def test_programming_errors_are_not_tried_again_unless_retry_on_lists_them() -> None:
    tries: list[str] = []

    async def wrong(name: str) -> None:
        tries.append(name)
        raise ValueError(name)

    @workflow
    async def w(ctx: Context) -> list[Any]:
        told: list[Any] = []
        for name, retry in (("plain", None), ("listed", Retry.attempts(2).initial("1ms").retry_on([ValueError]))):
            try:
                await ctx.step(name, retry=retry).run(wrong, name)
            except StepError as error:
                told.append([error.attempts, str(error.kind), error.non_retryable, error.exhausted])
        return told

    async with fake_server(w) as server:
        run = await server.run(w)
        assert run.result == [[1, "permanent", True, False], [2, "permanent", False, True]]
    assert tries == ["plain", "listed", "listed"]


async def test_an_http_error_is_tried_again_where_its_status_is_listed() -> None:
    tries: list[int] = []

    async def missing() -> None:
        tries.append(404)
        raise library_error("httpx.HTTPStatusError", response=status(404))

    @workflow
    async def w(ctx: Context) -> str:
        policy = Retry.exponential(2, initial="1ms", retry_on=["404"])
        try:
            await ctx.step("missing", retry=policy).run(missing)
        except StepError as error:
            return error.metadata["code"]
        return ""

    async with fake_server(w) as server:
        assert (await server.run(w)).result == "404"
    assert len(tries) == 2


async def test_a_large_output_is_warned_of_once_per_function(caplog: pytest.LogCaptureFixture) -> None:
    async def large() -> str:
        return "x" * 300_000

    @workflow
    async def w(ctx: Context) -> None:
        for _ in range(3):
            await ctx.step("large").run(large)

    async with fake_server(w) as server:
        await server.run(w)
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == 1
    assert "step 'large' is 300,002 bytes" in warned[0]
