"""Every route of the table and every page, with every key that is not good for it, is refused alike and changes
nothing; browsers have sessions, and what comes from other sites is refused."""

import asyncio
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest

from kagzi.core.access import EVERY_NAMESPACE, Scope
from kagzi.core.limits import Settings
from kagzi.server.access.scopes import check_routes
from kagzi.server.config import AUTH_KEYS
from kagzi.server.http.guard import PLAIN_COOKIE, SECURE_COOKIE, is_allowed, is_plain, set_cookie
from kagzi.server.http.route import Route
from kagzi.server.http.routes import routes
from kagzi.server.startup import CannotStart
from tests.server.apart_world import OURS, THEIRS, picture, rows_of
from tests.server.http.world import World, world
from tests.server.keys import first_key
from tests.support.postgres import Databases
from tests.support.timeouts import LOADED_MACHINE_S

UNKNOWN_KEY = f"kgz_{'0' * 16}_{'0' * 64}"
QUICK = Settings(keys_check_ms=100)
TABLE = routes()


class Keyed(NamedTuple):
    world: World
    database_url: str
    operator: str

    def client(self, key: str = "", **headers: str) -> httpx.Client:
        sent = {"authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=f"{self.world.url}/api/v1", timeout=LOADED_MACHINE_S, headers=sent | headers)

    def make(self, namespace: str, *scopes: str, expires_in: timedelta | None = None) -> dict[str, Any]:
        body: dict[str, Any] = {"name": "of a test", "scopes": scopes}
        if expires_in is not None:
            body["expires_at"] = time.strftime(
                "%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + expires_in.total_seconds())
            )
        with self.client(self.operator) as client:
            answer = client.post("/keys", params={"namespace": namespace}, json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def revoke(self, key_id: str) -> None:
        with self.client(self.operator) as client:
            assert client.delete(f"/keys/{key_id}", params={"namespace": "*"}).status_code == 200


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def keyed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Keyed]:
    def serve(url: str) -> Generator[Keyed]:
        key = asyncio.run(first_key(url))
        with world(url, api_key=key, auth=AUTH_KEYS, settings=QUICK) as made:
            yield Keyed(made, url, key)

    if request.param == "sqlite":
        yield from serve(f"sqlite:///{tmp_path_factory.mktemp('db')}/kagzi.db")
        return
    postgres: Databases = request.getfixturevalue("postgres")
    with postgres.database() as url:
        yield from serve(url)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LOADED_MACHINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def scopes_without(route: Route) -> tuple[str, ...]:
    return {
        Scope.READ: ("worker",),
        Scope.CLIENT: ("read", "worker"),
        Scope.WORKER: ("client", "read"),
        Scope.ADMIN: ("client", "read", "worker"),
    }[route.scope]


def place(route: Route, run_id: str) -> str:
    values = {"run": run_id, "namespace": OURS}
    return re.sub(r"\{(\w+)\}", lambda name: values.get(name[1], "our-thing"), route.path)


def test_every_route_refuses_every_key_that_is_not_good_for_it(keyed: Keyed) -> None:
    admins = ("admin",)
    with keyed.client(keyed.operator) as operator:
        started = operator.post("/runs", params={"namespace": OURS}, json={"workflow": "nobodys", "input": "secret"})
        run_id = started.json()["run_id"]
    revoked = keyed.make(OURS, *admins)
    keyed.revoke(revoked["key_id"])
    expired = keyed.make(OURS, *admins, expires_in=timedelta(seconds=3))["secret"]
    good = keyed.make(OURS, *admins)
    bad_keys = {
        "no key": "",
        "unknown": UNKNOWN_KEY,
        "another secret": f"kgz_{good['key_id']}_{'0' * 64}",
        "revoked": revoked["secret"],
        "expired": expired,
    }
    foreign = keyed.make(THEIRS, *admins)["secret"]
    by_scopes = {scopes: keyed.make(OURS, *scopes)["secret"] for scopes in {scopes_without(route) for route in TABLE}}
    with keyed.client(expired) as client:
        until(lambda: client.get("/session").status_code == 401)
    with keyed.client(revoked["secret"]) as client:
        until(lambda: client.get("/session").status_code == 401)
    before = asyncio.run(data_of(keyed))
    wrong: list[str] = []
    with keyed.client() as client:
        for route in TABLE:
            if route.public:
                continue
            expected = dict.fromkeys(bad_keys.items(), 401)
            if not route.any_key:
                expected["wrong scope", by_scopes[scopes_without(route)]] = 403
                expected["wrong namespace", foreign] = 403
                if route.everywhere:
                    expected["namespace only", good["secret"]] = 403
            texts: dict[str, str] = {}
            for (name, key), status in expected.items():
                answer = client.request(
                    route.method,
                    place(route, run_id),
                    params={"namespace": OURS} if route.namespaced else {},
                    headers={"authorization": f"Bearer {key}"} if key else {},
                )
                texts[name] = answer.text
                if answer.status_code != status or answer.headers["content-type"] != "application/problem+json":
                    wrong.append(f"{route.method} {route.path} with {name}: {answer.status_code} {answer.text}")
            if texts["unknown"] != texts["another secret"]:
                wrong.append(f"{route.method} {route.path} tells that a key exists: {texts}")
    assert not wrong, "\n".join(wrong)
    assert asyncio.run(data_of(keyed)) == before
    assert {f"{route.method} {route.path}" for route in TABLE if route.public} == {
        "POST /session",
        "GET /server/health",
    }
    assert {f"{route.method} {route.path}" for route in TABLE if route.any_key} == {
        "GET /session",
        "DELETE /session",
        "GET /server",
    }


async def data_of(keyed: Keyed) -> dict[str, list[str]]:
    """Of our namespace; when a key was used last is nobody's change."""
    tables = await picture(keyed.database_url)
    del tables["api_keys"]
    return tables


def test_a_route_without_a_scope_keeps_the_server_from_starting() -> None:
    check_routes((f"{route.method} {route.path}", route.scope) for route in TABLE)
    with pytest.raises(CannotStart, match="GET /new"):
        check_routes([("GET /new", None)])


def test_what_does_not_exist_looks_like_what_is_not_ours(keyed: Keyed) -> None:
    ours, theirs = keyed.make(OURS, "read"), keyed.make(THEIRS, "admin")
    with keyed.client(theirs["secret"]) as client:
        nothing = client.delete("/keys/0000000000000000", params={"namespace": THEIRS})
        foreign = client.delete(f"/keys/{ours['key_id']}", params={"namespace": THEIRS})
    assert nothing.status_code == foreign.status_code == 404
    assert nothing.text.replace("0" * 16, ours["key_id"]) == foreign.text


@pytest.mark.parametrize("path", ["/plain", "/plain/runs", "/plain/runs/x", "/metrics", "/nothing"])
def test_pages_ask_for_keys_and_probes_do_not(keyed: Keyed, path: str) -> None:
    url = keyed.world.url
    for probe in ("/healthz", "/readyz"):
        assert httpx.get(url + probe).status_code == 200
    assert httpx.get(url + path).status_code == 401
    reader = {"authorization": f"Bearer {keyed.make(THEIRS, 'read')['secret']}"}
    assert httpx.get(url + path, headers=reader).status_code == (200 if path == "/plain" else 403)
    operator = {"authorization": f"Bearer {keyed.operator}"}
    assert httpx.get(url + path, headers=operator).status_code in (200, 404)


# --- browsers ---------------------------------------------------------------------------------------------------------

OWN_PAGE = {"sec-fetch-site": "same-origin", "content-type": "application/json", "kagzi-request": "1"}


@contextmanager
def log_in(keyed: Keyed, key: str) -> Generator[httpx.Client]:
    with keyed.client() as client:
        _log_in(client, keyed, key)
        yield client


def _log_in(client: httpx.Client, keyed: Keyed, key: str) -> None:
    answer = client.post("/session", json={"key": key})
    assert answer.status_code == 201, answer.text
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert key not in answer.text + cookie
    assert client.cookies[PLAIN_COOKIE] not in asyncio.run(stored_sessions(keyed)), "only its hash is stored"


async def stored_sessions(keyed: Keyed) -> str:
    return str(await rows_of(keyed.database_url, "browser_sessions"))


def test_a_browser_logs_in_and_out(keyed: Keyed) -> None:
    made = keyed.make(OURS, "client")
    with log_in(keyed, made["secret"]) as browser:
        me = browser.get("/session").json()
        assert (me["key_id"], me["namespace"], me["scopes"], me["auth"]) == (made["key_id"], OURS, ["client"], "keys")
        assert browser.get("/runs", params={"namespace": OURS}).status_code == 200
        assert browser.get("/runs").status_code == 403
        token = browser.cookies[PLAIN_COOKIE]
        assert browser.delete("/session", headers=OWN_PAGE).status_code == 204
    with keyed.client(cookie=f"{PLAIN_COOKIE}={token}") as again:
        until(lambda: again.get("/session").status_code == 401)
    with keyed.client() as client:
        assert client.post("/session", json={"key": UNKNOWN_KEY}).status_code == 401
        assert client.post("/session", json={"key": "secret"}).status_code == 401


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, 201),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({"content-type": "text/plain"}, 403),
        ({"content-type": "application/x-www-form-urlencoded"}, 403),
        ({"kagzi-request": ""}, 403),
        ({"sec-fetch-site": "", "origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "", "origin": ""}, 403),
    ],
)
def test_a_change_by_a_session_comes_from_a_page_of_this_site(
    keyed: Keyed, changed: dict[str, str], status: int
) -> None:
    headers = {name: value for name, value in (OWN_PAGE | changed).items() if value}
    body = msgspec.json.encode({"workflow": "nobodys"})
    with log_in(keyed, keyed.make(OURS, "client")["secret"]) as browser:
        counted = {"namespace": OURS, "count": "true", "workflow": "nobodys"}
        before = browser.get("/runs", params=counted).json()["count"]
        answer = browser.post("/runs", params={"namespace": OURS}, content=body, headers=headers)
        assert answer.status_code == status, answer.text
        assert browser.get("/runs", params=counted).json()["count"] == before + (status == 201)


def test_an_equal_origin_will_do_where_a_browser_says_no_more(keyed: Keyed) -> None:
    with log_in(keyed, keyed.make(OURS, "client")["secret"]) as browser:
        headers = {"origin": keyed.world.url, "content-type": "application/json", "kagzi-request": "1"}
        answer = browser.post("/runs", params={"namespace": OURS}, json={"workflow": "nobodys"}, headers=headers)
        assert answer.status_code == 201, answer.text


def test_a_session_and_a_stream_end_with_the_key(keyed: Keyed) -> None:
    made = keyed.make(OURS, "client")
    with log_in(keyed, made["secret"]) as browser:
        started = browser.post("/runs", params={"namespace": OURS}, json={"workflow": "nobodys"}, headers=OWN_PAGE)
        run_id = started.json()["run_id"]
        with browser.stream("GET", f"/runs/{run_id}/events", params={"namespace": OURS}) as stream:
            assert stream.status_code == 200
            keyed.revoke(made["key_id"])
            with pytest.raises(httpx.RemoteProtocolError):
                for _ in stream.iter_bytes():
                    pass
        until(lambda: browser.get("/session").status_code == 401)


def test_cookies_are_secure_but_on_loopback_without_tls() -> None:
    assert set_cookie("t", 5, plain=False) == f"{SECURE_COOKIE}=t; Path=/; Max-Age=5; HttpOnly; SameSite=Strict; Secure"
    assert is_plain({"host": "127.0.0.1:8420"}, "http://127.0.0.1:8420")
    assert not is_plain({"host": "127.0.0.1:8420"}, "https://127.0.0.1:8420")
    assert not is_plain({"host": "kagzi.example.com"}, "http://0.0.0.0:8420")


@pytest.mark.parametrize(
    ("host", "local_only", "hosts", "allowed"),
    [
        ("localhost:1", True, (), True),
        ("evil.example", True, (), False),
        ("kagzi.example.com", True, ("kagzi.example.com",), True),
        ("evil.example", False, (), True),
        ("evil.example", False, ("kagzi.example.com",), False),
        ("KAGZI.example.com:443", False, ("kagzi.example.com",), True),
        ("[::2]:1", False, ("[::2]",), True),
        ("", False, ("kagzi.example.com",), False),
        ("[", True, (), False),
    ],
)
def test_names_by_which_the_port_may_be_called(
    host: str, local_only: bool, hosts: tuple[str, ...], allowed: bool
) -> None:
    assert is_allowed(host, local_only=local_only, hosts=hosts) is allowed


def test_the_audit_is_read_over_http(keyed: Keyed) -> None:
    made = keyed.make("audited", "read")
    with keyed.client(keyed.operator) as client:
        rotated = client.post(f"/keys/{made['key_id']}/rotate", params={"namespace": "audited"}, json={"grace": "1h"})
        assert rotated.status_code == 200, rotated.text
        listed = client.get("/audit", params={"namespace": "audited"}).json()["rows"]
        assert [(row["action"], row["key_name"]) for row in listed] == [
            ("key.rotate", "operator"),
            ("key.create", "operator"),
        ]
        assert listed[0]["details"] == {"grace_seconds": "3600"}
        everywhere = client.get("/audit", params={"namespace": EVERY_NAMESPACE, "size": 1}).json()
        assert everywhere["rows"] == listed[:1]
        assert made["secret"] not in client.get("/keys", params={"namespace": "audited"}).text
    for secret in (made["secret"], rotated.json()["secret"]):
        with keyed.client(secret) as client:
            assert client.get("/session").status_code == 200
