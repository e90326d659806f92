"""How the dashboard is served: one page for its paths, a few files, and plain pages where it was not built."""

import gzip
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from kagzi.server.app import Server
from kagzi.server.config import AUTH_KEYS
from kagzi.server.http.pages import bundle
from kagzi.server.listen import ListenAddress
from tests.server.conftest import StartServer
from tests.server.stubs import TIMEOUT_S, Stubs

INDEX = '<!doctype html><meta name="kagzi-base" content="{{base}}"><script src="{{base}}static/app.js"></script>'
SCRIPT = b"console.log('a few words that are worth to be compressed, a few words that are');"
PATHS = [
    "/",
    "/runs",
    "/runs/0191e000-0000-7000-8000-0000000000aa",
    "/runs/a/compare/b",
    "/workflows/shop%2Forder/start",
    "/schedules",
    "/workers/w1",
    "/inbox",
    "/operations/x",
    "/settings",
    "/login",
]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)

Open = Callable[..., Awaitable[httpx.AsyncClient]]


@pytest.fixture
def no_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bundle, "DIRECTORY", tmp_path)
    return tmp_path


@pytest.fixture
def built(no_bundle: Path) -> Path:
    (no_bundle / "index.html").write_text(INDEX)
    (no_bundle / "app.js").write_bytes(SCRIPT)
    (no_bundle / "app.js.gz").write_bytes(gzip.compress(SCRIPT, mtime=0))
    (no_bundle / "style.css").write_text("body{}")
    (no_bundle / "app.js.map").write_text("{}")
    (no_bundle / "licenses.txt").write_text("MIT")
    (no_bundle / "pages.js").write_text("export {}")
    (no_bundle / "build.txt").write_text("0123\n")
    return no_bundle


@pytest.fixture
async def opened(start_server: StartServer) -> AsyncIterator[Open]:
    """Starts a server; a client of it."""
    async with AsyncExitStack() as stack:

        async def open_one(**changes: Any) -> httpx.AsyncClient:
            server: Server = await start_server(http=ListenAddress("127.0.0.1", 0), **changes)
            port = httpx.URL(server.http_url).port
            client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=TIMEOUT_S)
            client.headers["x-grpc"] = server.grpc_address
            return await stack.enter_async_context(client)

        yield open_one


async def test_every_path_of_the_dashboard_is_its_page(built: Path, opened: Open) -> None:
    client = await opened()
    for path in PATHS:
        page = await client.get(path)
        assert (page.status_code, page.text) == (200, INDEX.replace("{{base}}", "/")), path
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["content-security-policy"] == POLICY
        assert (page.headers["cache-control"], page.headers["x-content-type-options"]) == ("no-cache", "nosniff")
    again = await client.get("/runs", headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert (await client.get("/api/v1/nothing")).headers["content-type"] == "application/problem+json"
    assert (await client.get("/nothing")).status_code == 404


async def test_files_have_types_tags_and_a_compressed_form(built: Path, opened: Open) -> None:
    client = await opened()
    types = {
        "app.js": "text/javascript; charset=utf-8",
        "style.css": "text/css; charset=utf-8",
        "app.js.map": "application/json",
        "licenses.txt": "text/plain; charset=utf-8",
    }
    for name, media_type in types.items():
        file = await client.get(f"/static/{name}")
        assert (file.status_code, file.headers["content-type"]) == (200, media_type)
        assert file.headers["cache-control"] == "no-cache"
    zipped = await client.get("/static/app.js", headers={"Accept-Encoding": "br, gzip;q=0.5"})
    assert zipped.headers["content-encoding"] == "gzip"
    assert zipped.content == SCRIPT
    for refused in ("br", "gzip;q=0", "gzip; q=0.0", "identity"):
        plain = await client.get("/static/app.js", headers={"Accept-Encoding": refused})
        assert "content-encoding" not in plain.headers
        assert plain.content == SCRIPT
    etag = zipped.headers["etag"]
    assert (await client.get("/static/app.js", headers={"If-None-Match": etag})).status_code == 304
    (built / "app.js").write_bytes(b"new")
    (built / "app.js.gz").unlink()
    changed = await client.get("/static/app.js", headers={"If-None-Match": etag})
    assert (changed.status_code, changed.content) == (200, b"new")


async def test_nothing_else_is_served(built: Path, opened: Open) -> None:
    client = await opened()
    for name in ("..%2Fweb.py", "%2e%2e/web.py", "index.html", "app.js.gz", "", "x.js", "app.js/", "%00.js", "/app.js"):
        request = client.build_request("GET", "/")
        request.url = request.url.copy_with(raw_path=f"/static/{name}".encode())
        assert (await client.send(request)).status_code in (307, 404), name


async def test_the_page_needs_no_key_and_the_plain_ones_do(built: Path, opened: Open) -> None:
    client = await opened(auth=AUTH_KEYS)
    (built / "index.html").write_text('<meta name="kagzi-auth" content="{{auth}}">')
    for path in (*PATHS, "/static/app.js", "/r/0191"):
        assert (await client.get(path)).status_code == 200, path
    assert (await client.get("/")).text == '<meta name="kagzi-auth" content="keys">'
    for path in ("/plain", "/plain/runs", "/plain/runs/x", "/metrics", "/api/v1/runs"):
        assert (await client.get(path)).status_code == 401, path


async def test_without_a_bundle_the_plain_pages_say_what_to_run(no_bundle: Path, opened: Open) -> None:
    client = await opened()
    front = await client.get("/")
    assert front.status_code == 200
    assert "<code>make web</code>" in front.text
    async with grpc.aio.insecure_channel(client.headers["x-grpc"]) as channel:
        started = await Stubs(channel).start()
    for path in ("/runs", f"/runs/{started.run_id}", httpx.URL(started.url).raw_path.decode()):
        page = await client.get(path)
        assert page.status_code == 200
        assert started.run_id in page.text
    missing = await client.get("/inbox")
    assert missing.status_code == 404
    assert "make web" in missing.text
    keyed = await opened(auth=AUTH_KEYS)
    for path in PATHS:
        assert (await keyed.get(path)).status_code == 401, path
    assert (await keyed.get("/r/0191")).status_code == 401


async def test_addresses_of_runs_are_those_that_people_reach(start_server: StartServer) -> None:
    for listen, changes, expected in (
        ("127.0.0.1", {"public_url": "https://kagzi.example.com/tools"}, r"https://kagzi\.example\.com/tools/runs/.+"),
        ("0.0.0.0", {"insecure": True}, r"http://localhost:\d+/runs/.+"),
    ):
        server: Server = await start_server(http=ListenAddress(listen, 0), **changes)
        async with grpc.aio.insecure_channel(server.grpc_address) as channel:
            assert re.fullmatch(expected, (await Stubs(channel).start()).url)
        assert server.http_url.startswith(f"http://{listen}:")  # what it says that it listens on


async def test_a_short_address_leads_to_the_run(built: Path, opened: Open) -> None:
    client = await opened(http_base_path="/kagzi")
    async with grpc.aio.insecure_channel(client.headers["x-grpc"]) as channel:
        stubs = Stubs(channel)
        here = await stubs.start()
        there = await stubs.start(namespace_id="team a")
        await stubs.start(workflow_id=here.run_id[:-1])  # this one begins as the run does, by its workflow id
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/kagzi/runs/.+", here.url)
    answer = await client.get(f"/r/{here.run_id[:-1]}")
    assert (answer.status_code, answer.headers["location"]) == (307, f"/kagzi/runs/{here.run_id}")
    answer = await client.get(f"/kagzi/r/{there.run_id[:-1]}", params={"namespace": "team a"})
    assert answer.headers["location"] == f"/kagzi/runs/{there.run_id}?namespace=team+a"
    for several in ("0", "zzz"):
        listed = await client.get(f"/r/{several}")
        assert listed.headers["location"] == f"/kagzi/runs?id_prefix={several}"


async def test_a_base_path_may_be_set(built: Path, opened: Open) -> None:
    client = await opened(http_base_path="/tools/kagzi")
    for path in ("/runs", "/tools/kagzi/runs", "/tools/kagzi", "/tools/kagzi/"):
        assert (await client.get(path)).text == INDEX.replace("{{base}}", "/tools/kagzi/"), path
    assert (await client.get("/tools/kagzi/static/app.js")).content == SCRIPT
    assert (await client.get("/tools/kagzi/api/v1/runs/a%2Fb")).json()["code"] == "not_found"
    assert (await client.get("/tools/kagzi/healthz")).status_code == 200
    assert 'href="/tools/kagzi/plain/runs"' in (await client.get("/tools/kagzi/plain")).text
    assert (await client.get("/tools/kagzis/runs")).status_code == 404


@pytest.mark.parametrize(
    ("proxies", "prefix", "base"),
    [
        (("127.0.0.0/8",), "/kagzi", "/kagzi/"),
        (("127.0.0.0/8",), "/kagzi/", "/kagzi/"),
        (("10.0.0.0/8", "::1/128"), "/kagzi", "/"),
        ((), "/kagzi", "/"),
        (("127.0.0.0/8",), "//evil.example", "/"),
        (("127.0.0.0/8",), '/"><script>', "/"),
        (("127.0.0.0/8",), "https://evil.example/", "/"),
    ],
)
async def test_a_proxy_that_is_trusted_may_say_the_base_path(
    built: Path, opened: Open, proxies: tuple[str, ...], prefix: str, base: str
) -> None:
    client = await opened(http_proxies=proxies)
    page = await client.get("/runs", headers={"X-Forwarded-Prefix": prefix})
    assert page.text == INDEX.replace("{{base}}", base)


async def test_the_other_pages_are_of_the_same_build(built: Path, opened: Open) -> None:
    client = await opened()
    answers = [(await client.get(path)).status_code for path in ("/static/pages.js?v=0123", "/static/pages.js?v=4567")]
    assert answers == [200, 404]
    (built / "build.txt").unlink()
    assert (await client.get("/static/pages.js?v=0123")).status_code == 404
