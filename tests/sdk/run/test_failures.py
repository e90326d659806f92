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

import kagzi
from kagzi.core.error_details import ErrorDetail, ErrorKind
from kagzi.core.errors import InternalError, NonRetryable, NotFound, StepError
from kagzi.core.retry.retry_after import RetryAfter
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
        notified: list[Any] = []
        for name, retry in (("plain", None), ("listed", Retry.attempts(2).initial("1ms").retry_on([ValueError]))):
            try:
                await ctx.step(name, retry=retry).run(wrong, name)
            except StepError as error:
                notified.append([error.attempts, str(error.kind), error.non_retryable, error.exhausted])
        return notified

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


EXPORTED_ERRORS = sorted(
    (cls for name in kagzi.__all__ if isinstance(cls := getattr(kagzi, name), type) and issubclass(cls, BaseException)),
    key=lambda cls: cls.__name__,
)


def an_error(cls: type[BaseException]) -> BaseException:
    recorded = ErrorDetail(type="shop.OutOfStock", message="none left")
    if issubclass(cls, StepError):
        return cls.of("reserve", recorded, attempts=1)
    if issubclass(cls, kagzi.RunError):
        return cls.of("run-1", "failed", recorded)
    return cls("later", "1ms") if issubclass(cls, RetryAfter) else cls("no")


async def test_every_exported_error_is_recorded_and_matched_by_its_public_name() -> None:
    async def fails(name: str) -> None:
        raise an_error(getattr(kagzi, name))

    @workflow
    async def w(ctx: Context) -> dict[str, Any]:
        notified: dict[str, Any] = {}
        for cls in EXPORTED_ERRORS:
            try:
                await ctx.step(cls.__name__, retry=Retry.none()).run(fails, cls.__name__)
            except StepError as error:
                notified[cls.__name__] = [
                    error.error.type,
                    [each.__name__ for each in EXPORTED_ERRORS if error.matches(each)],
                ]
        return notified

    async with fake_server(w) as server:
        result = (await server.run(w)).result
    assert len(EXPORTED_ERRORS) >= 20
    assert result == {
        cls.__name__: [f"kagzi.{cls.__name__}", [each.__name__ for each in EXPORTED_ERRORS if issubclass(cls, each)]]
        for cls in EXPORTED_ERRORS
    }


async def test_listing_an_error_of_kagzi_or_of_the_user_decides_about_its_retry() -> None:
    class OutOfStockError(NotFound):
        pass

    tries: list[str] = []

    async def fails(name: str) -> None:
        tries.append(name)
        raise OutOfStockError(name)

    retry = Retry.attempts(2).initial("1ms")
    policies = {
        "not by default": retry,
        "its class": retry.retry_on([OutOfStockError]),
        "its base": retry.retry_on([kagzi.NotFound]),
        "by name": retry.retry_on(["kagzi.RequestError"]),
        "by its plain name": retry.retry_on(["RequestError"]),
        "by the file it was in once": retry.retry_on(["kagzi.core.errors.NotFound"]),
        "the nearest decides": retry.retry_on([kagzi.NotFound]).non_retryable([OutOfStockError]),
    }

    @workflow
    async def w(ctx: Context) -> dict[str, int]:
        counts: dict[str, int] = {}
        for name, policy in policies.items():
            try:
                await ctx.step(name, retry=policy).run(fails, name)
            except StepError as error:
                counts[name] = error.attempts
        return counts

    async with fake_server(w) as server:
        counts = (await server.run(w)).result
    assert counts == dict.fromkeys(policies, 2) | {"not by default": 1, "the nearest decides": 1}
