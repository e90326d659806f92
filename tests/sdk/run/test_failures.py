"""What errors mean: builtin ones by class, those of libraries by name, without importing them."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from kagzi.core.errors import ErrorKind, NonRetryable, RetryAfter
from kagzi.sdk.context import Context
from kagzi.sdk.failures import kind_of
from kagzi.sdk.workflow import workflow

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
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, BaseException) else str(each),
)
def test_the_kind_of_an_error(error: BaseException, kind: ErrorKind) -> None:
    assert kind_of(error) is kind


def test_subclasses_of_library_errors_are_known_by_their_bases() -> None:
    base = type(library_error("httpx.TimeoutException"))
    assert kind_of(library_error("httpx.ReadTimeout", base)) is ErrorKind.TIMEOUT


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
