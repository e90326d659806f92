"""What all routes have in common: what is refused and how, tags, sizes, paths, and that nothing answers HTML."""

import asyncio
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest

from kagzi.core import limits
from kagzi.core.access import Scope
from kagzi.core.errors import AlreadyExists, InternalError, ResourceExhausted, StoreLost, limit_reached, not_found
from kagzi.server.http import api as api_module
from kagzi.server.http.matching import Table
from kagzi.server.http.problems import MethodNotAllowed
from kagzi.server.http.route import ApiRequest, Route
from kagzi.server.http.routes import routes
from kagzi.server.startup import CannotStart
from tests.server.http.world import World, world

PROBLEM = "application/problem+json"


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM), answer.text
    refusal = answer.json()
    assert (refusal["status"], refusal["type"]) == (status, f"urn:kagzi:error:{refusal['code']}")
    return refusal


def test_nothing_below_api_is_html(http: httpx.Client) -> None:
    base = str(http.base_url).removesuffix("/api/v1/")
    for path in ("/api", "/api/", "/api/v2/runs", "/api/v1", "/api/v1/runs/x/y/z", "/api/v1/runs//input"):
        assert "openapi.json" in problem(httpx.get(base + path), 404)["detail"]
    refused = http.delete("/runs")
    assert problem(refused, 405)["remedy"] == "Use GET, POST, HEAD."
    assert refused.headers["allow"] == "GET, POST, HEAD"
    assert problem(http.request("OPTIONS", "/runs"), 405)


def test_what_is_not_known_is_refused_by_name(http: httpx.Client) -> None:
    refusal = problem(http.get("/runs", params={"statuss": "failed"}), 400)
    assert refusal["field"] == "statuss"
    assert "status, workflow" in refusal["detail"]
    refusal = problem(http.post("/runs", json={"workflow": "hello", "retry": {"attempts": 3}}), 400)
    assert refusal["field"] == "retry.attempts"
    assert problem(http.get("/runs/x/step"), 400)["field"] == "id"
    assert problem(http.get("/namespaces", params={"namespace": "x"}), 400)["field"] == "namespace"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=failing", "status"),
        ("size=0", "size"),
        ("size=1001", "size"),
        ("size=x", "size"),
        ("size=1&size=2", "size"),
        ("since=yesterday", "since"),
        ("since=2026-11-16T14:00:00", "since"),
        ("since=1900-01-01T00:00:00Z", "since"),
        ("count=maybe", "count"),
        ("label=x", "label"),
        ("namespace=a%00b", "namespace"),
        ("workflow=%07", "workflow"),
        ("token=x", "token"),
    ],
)
def test_a_parameter_that_cannot_be_right_is_named(http: httpx.Client, query: str, field: str) -> None:
    assert problem(http.get(f"/runs?{query}"), 400)["field"] == field


def test_bodies_that_cannot_be_read(http: httpx.Client) -> None:
    json = {"Content-Type": "application/json"}
    for body in (b"", b"{", b"[]", b'{"workflow": 1}', b'{"workflow": "a", "input": "\xff"}', b"[" * 100_000, b"\xff"):
        problem(http.post("/runs", content=body, headers=json), 400)
    assert problem(http.post("/runs", content=b"workflow=hello"), 415)["field"] == "Content-Type"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert "application/json" in problem(http.post("/runs", content=b"a=b", headers=form), 415)["remedy"]


def test_a_body_has_a_limit_however_it_comes(http: httpx.Client) -> None:
    large = b'{"workflow": "' + b"x" * limits.MESSAGE_HARD_BYTES + b'"}'
    json = {"Content-Type": "application/json"}
    refusal = problem(http.post("/runs", content=large, headers=json), 413)
    assert (refusal["limit"], refusal["metadata"]["maximum"]) == ("message_bytes", str(limits.MESSAGE_HARD_BYTES))
    problem(http.post("/runs", content=iter([large[:100], large[100:]]), headers=json), 413)
    value = {"workflow": "nobody", "input": "x" * limits.PAYLOAD_BYTES}
    assert problem(http.post("/runs", json=value), 400)["limit"] == "payload_bytes"


def test_a_tag_says_whether_anything_changed(http: httpx.Client, api: World) -> None:
    run_id = api.start("nobody")
    first = http.get(f"/runs/{run_id}")
    tag = first.headers["etag"]
    assert tag.startswith('W/"')
    again = http.get(f"/runs/{run_id}", headers={"If-None-Match": f'"x", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    http.post(f"/runs/{run_id}/cancel")
    changed = http.get(f"/runs/{run_id}", headers={"If-None-Match": tag})
    assert (changed.status_code, changed.json()["status"]) == (200, "cancelled")
    assert http.head(f"/runs/{run_id}").headers["etag"] == changed.headers["etag"]
    assert http.get("/openapi.json").headers["etag"]


def test_every_answer_to_a_get_has_a_tag(http: httpx.Client, api: World) -> None:
    run_id = api.start("hello", input="x")
    api.ended(run_id)
    names = {"run": run_id, "workflow": "hello", "namespace": "default"}
    for route in routes():
        if route.method == "GET" and not route.stream and route.makes != "application/x-ndjson":
            path = route.path
            for name, value in names.items():
                path = path.replace(f"{{{name}}}", value)
            query = {"id": "greet"} if path.endswith("/step") else {}
            answer = http.get(path, params=query)
            assert answer.status_code != 200 or answer.headers["etag"].startswith("W/"), path


def test_a_slash_in_a_name_stays_in_it(http: httpx.Client, api: World) -> None:
    run_id = api.start("nobody", workflow_id="a/b c#d?e=f&g%2Fh")
    path = "/runs/workflow_id:a%2Fb%20c%23d%3Fe%3Df%26g%252Fh"
    assert http.get(path).json()["run_id"] == run_id
    assert http.get(f"{path}/explain").json()["run_id"] == run_id
    assert problem(http.get("/runs/workflow_id:a/b"), 404)
    assert problem(http.get("/runs/%ff"), 400)


def test_other_sites_change_nothing(http: httpx.Client, api: World) -> None:
    run_id = api.start("nobody")
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        refusal = problem(http.post(f"/runs/{run_id}/cancel", headers=headers), 403)
        assert refusal["code"] == "unauthorized"
    assert http.get(f"/runs/{run_id}").json()["status"] == "pending"
    own = {"Origin": str(http.base_url).removesuffix("/api/v1/"), "Sec-Fetch-Site": "same-origin"}
    assert http.post(f"/runs/{run_id}/cancel", headers=own).status_code == 200
    assert "access-control-allow-origin" not in http.get("/runs", headers={"Origin": "https://evil.example"}).headers


def raising(error: Exception) -> Any:
    async def get(*_: Any, **__: Any) -> Any:
        raise error

    return get


@pytest.mark.parametrize(
    ("error", "status", "header"),
    [
        (AlreadyExists("taken"), 409, ""),
        (ResourceExhausted("full", metadata=limit_reached("open_runs", 3)), 429, "1"),
        (StoreLost("/var/secret/kagzi.db is gone"), 503, "1"),
        (InternalError("secret"), 500, ""),
        (KeyError("secret"), 500, ""),
    ],
)
def test_errors_are_told_as_grpc_tells_them(
    api: World, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, header: str
) -> None:
    engine: Any = api.server._engine
    monkeypatch.setattr(engine.runs, "get", raising(error))
    answer = api.client.get("/runs/x")
    refusal = problem(answer, status)
    assert answer.headers.get("retry-after", "") == header
    assert "secret" not in answer.text
    if status == 500:
        number = refusal["instance"].removeprefix("urn:kagzi:incident:")
        assert number
        assert number in refusal["detail"]
    if status == 429:
        assert (refusal["limit"], refusal["metadata"]["maximum"]) == ("open_runs", "3")


def test_what_takes_too_long_is_ended(api: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def for_ever(*_: Any, **__: Any) -> Any:
        await asyncio.sleep(3_600)

    engine: Any = api.server._engine
    monkeypatch.setattr(engine.runs, "get", for_ever)
    monkeypatch.setattr(api_module, "CALL_S", 0.05)
    answer = api.client.get("/runs/x")
    assert "overloaded" in problem(answer, 503)["detail"]
    assert answer.headers["retry-after"] == "1"


def test_a_body_that_does_not_come_is_given_up(api: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "BODY_S", 0.05)
    address = urlsplit(api.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        head = f"POST /api/v1/runs HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: 100\r\n\r\n{{"
        connection.sendall(head.encode())
        assert b"400 Bad Request" in connection.recv(10_000)


def test_budgets_are_those_of_grpc(api: World) -> None:
    budget = api.data.budgets.calls
    taken = budget.limit
    for _ in range(taken):
        budget.take("greedy")
    try:
        refused = api.client.get("/runs", params={"namespace": "greedy"})
        assert problem(refused, 429)["limit"] == "calls"
        assert api.client.get("/runs", params={"namespace": "modest"}).status_code == 200
    finally:
        for _ in range(taken):
            budget.give_back("greedy")


def test_a_namespace_that_is_being_deleted_is_gone(api: World, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = raising(not_found("namespace", "going"))
    monkeypatch.setattr(api.data.engine.namespaces, "admit", gone)
    problem(api.client.get("/runs", params={"namespace": "going"}), 404)
    assert api.client.get("/namespaces/default").status_code == 200


def test_a_server_that_stops_says_so() -> None:
    with world() as made:
        made.run(_end(made))
        refusal = problem(made.client.get("/runs"), 503)
        assert "stopping" in refusal["detail"]


async def _end(made: World) -> None:
    made.data.deadlines.end()


# --- the table --------------------------------------------------------------------------------------------------------


async def nothing(request: ApiRequest[Any, Any]) -> None:
    return None


class Lenient(msgspec.Struct, frozen=True):
    x: int = 0


def test_a_route_without_a_scope_stops_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    from kagzi.server.http.handlers import runs

    unscoped = Route("GET", "/x", nothing, None, "x")  # type: ignore[arg-type]
    monkeypatch.setattr(runs, "ROUTES", (unscoped,))
    with pytest.raises(CannotStart, match="no scope is declared for the HTTP routes GET /x"), world():
        pass


def test_what_a_route_takes_refuses_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    from kagzi.server.http.handlers import runs

    monkeypatch.setattr(runs, "ROUTES", (Route("GET", "/x", nothing, Scope.READ, "x", query=Lenient),))
    with pytest.raises(TypeError, match="make it an Input"):
        routes()


def test_two_routes_cannot_be_one() -> None:
    one = Route("GET", "/x", nothing, Scope.READ, "x")
    with pytest.raises(ValueError, match="GET /x is in the table of routes twice"):
        Table((one, one))


def test_words_go_before_names() -> None:
    table = Table(routes())
    assert table.find("POST", "/api/v1/runs/batch")[0].path == "/runs/batch"
    with pytest.raises(MethodNotAllowed, match="Use GET, POST, HEAD"):
        table.find("DELETE", "/api/v1/runs/batch")
    assert table.find("GET", "/api/v1/runs/batch")[0].path == "/runs/{run}"  # a word has its own methods only
    route, path = table.find("GET", "/api/v1/runs/b%2F1")
    assert (route.path, path) == ("/runs/{run}", {"run": "b/1"})
