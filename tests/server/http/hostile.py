"""Requests that nobody would send by mistake: each place of each route with values that break what is careless."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import httpx
import msgspec
from msgspec import inspect

from kagzi.server.http.decoding import parameters
from kagzi.server.http.problems import PROBLEM_JSON
from kagzi.server.http.route import JSON, Route
from tests.server.http.world import World

TEXTS = (
    *("", " ", "\0", "\x1b[2J", "\u202e", "💥", "ü" * 200, "x" * 5_000, "a/b", "../../etc", "%", "$input", "nan"),
    *("'; drop table runs; --", "-1", "9" * 30, "1e999", "-5s", "5", "1000000000y", "workflow_id:", "workflow_id:\0"),
    *("2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999-23:59"),
)
SEGMENTS = (*(quote(text, safe="") for text in TEXTS if text), "%ff", "%ED%A0%80", "%2e%2e", "%2F", "%00", "%", "%zz")
VALUES = (
    *(b"null", b"true", b"0", b"-1", b"2147483648", b"9223372036854775808", b"9" * 40, b"9" * 5_000, b"1.5", b"1e400"),
    *(b"[]", b"{}", b"[[]]", b"[null]", b'{"":""}', b'{"\\u0000":"\\u0000"}', b'"\\ud800"', b'{"\\ud800":1}'),
    b"[" * 3_000 + b"]" * 3_000,
    *(json.dumps(text).encode() for text in TEXTS),
)
BODIES = (
    b"null",
    b"[]",
    b"1",
    b"{",
    b"\xff",
    b"{}x",
    b'{"\\ud800":1}',
    b"[" * 100_000,
    b'{"' + b"x" * 100_000 + b'":1}',
)


class Hostile(NamedTuple):
    method: str
    path: str
    body: bytes | None = None
    media_type: str = JSON


def requests_of(route: Route, names: Mapping[str, str]) -> Iterator[Hostile]:
    """`names`: what there is, by the names of segments."""
    body = _usual_body(route)
    segments = [segment[1:-1] for segment in route.path.split("/") if segment.startswith("{")]

    def path(**others: str) -> str:
        path = route.path
        for segment in segments:
            path = path.replace(f"{{{segment}}}", {**names, **others}.get(segment, "none"))
        return path

    def request(path: str, body: bytes | None = body) -> Hostile:
        return Hostile(route.method, path, body, route.takes)

    for segment in segments:
        yield from (request(path(**{segment: value})) for value in SEGMENTS)
    for name in (*parameters(route.query), "nothing", "namespace"):
        yield from (request(f"{path()}?{urlencode({name: text})}") for text in TEXTS)
        yield from (
            request(f"{path()}?{query}") for query in (f"{name}=1&{name}=2", f"{name}=%ff", f"{name}=%ED%A0%80")
        )
    if route.method != "GET" and route.takes == JSON:
        yield from (request(path(), body) for body in BODIES)
        yield Hostile(route.method, path(), b"a=b", "text/plain")
    if isinstance(route.body, type) and route.takes == JSON:
        yield from (request(path(), body) for body in _bodies(route.body))


def names_in(world: World) -> dict[str, str]:
    """An ended run, a schedule, and names that nobody has heard of."""
    run_id = world.start("hello", input="x")
    world.ended(run_id)
    world.client.put("/schedules/s", json={"workflow": "greet", "cron": "0 6 * * *"})
    return {"run": run_id, "schedule": "s", "workflow": "greet", "version": "1", "namespace": "shop"}


def send(client: httpx.Client, request: Hostile) -> httpx.Response:
    """Asserts that it is answered, and if it is refused that the refusal names what to fix."""
    headers = {"accept": "application/json"} | ({} if request.body is None else {"content-type": request.media_type})
    answer = client.request(request.method, request.path, content=request.body, headers=headers)
    assert answer.status_code < 500, (request, answer.text)
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == PROBLEM_JSON, (request, answer.text)
    if answer.status_code == 400:
        assert answer.json()["field"], (request, answer.text)
    return answer


def _bodies(kind: Any) -> Iterator[bytes]:
    """With one value at one place, also inside of what the body is made of."""
    info, usual = _struct(kind), _usual(kind)
    for field in info.fields:
        for value in VALUES:
            yield _object({**usual, field.encode_name: value})
        inner = _plain(field.type)
        if isinstance(inner, inspect.StructType):
            yield from (_object({**usual, field.encode_name: body}) for body in _bodies(inner.cls))
        elif isinstance(item := _plain(getattr(inner, "item_type", inner)), inspect.StructType):
            yield from (_object({**usual, field.encode_name: b"[" + body + b"]"}) for body in _bodies(item.cls))


def _usual_body(route: Route) -> bytes | None:
    if route.takes != JSON:
        return b"{}"
    return _object(_usual(route.body)) if isinstance(route.body, type) else None


def _usual(kind: Any) -> dict[str, bytes]:
    """What is required, as somebody might say it."""
    return {field.encode_name: _value(_plain(field.type)) for field in _struct(kind).fields if field.required}


def _value(kind: inspect.Type) -> bytes:
    match kind:
        case inspect.StructType():
            return _object(_usual(kind.cls))
        case inspect.DateTimeType():
            return b'"2026-01-01T00:00:00Z"'
        case inspect.VarTupleType() | inspect.ListType():
            return b"[]"
        case inspect.EnumType():
            return json.dumps(next(iter(kind.cls)).value).encode()
        case inspect.LiteralType():
            return json.dumps(kind.values[0]).encode()
        case inspect.BoolType():
            return b"true"
        case inspect.StrType():
            return b'"greet"'
        case _:
            return b"{}"


def _object(fields: Mapping[str, bytes]) -> bytes:
    return b"{" + b",".join(json.dumps(name).encode() + b":" + value for name, value in fields.items()) + b"}"


def _struct(kind: Any) -> inspect.StructType:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    assert issubclass(info.cls, msgspec.Struct)
    return info


def _plain(kind: inspect.Type) -> inspect.Type:
    """Without what is written around it."""
    if isinstance(kind, inspect.Metadata):
        return _plain(kind.type)
    rest = [each for each in getattr(kind, "types", ()) if not isinstance(each, inspect.NoneType)]
    return _plain(rest[0]) if len(rest) == 1 else kind
