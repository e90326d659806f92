"""The server and its figures over HTTP."""

from kagzi.core.version import __version__
from tests.server.http.nouns import Nouns


def test_what_the_server_is(nouns: Nouns) -> None:
    server = nouns.get("server")
    assert (server["version"], server["api_version"], server["store"]) == (__version__, "v1", "sqlite")
    assert (server["http_url"], server["store_problem"]) == (nouns.world.url, None)
    assert server["max_payload_bytes"] == 2 * 1024 * 1024
    assert server["now"].endswith("Z")


def test_whether_it_serves(nouns: Nouns) -> None:
    assert nouns.get("server/health")["status"] == "serving"
    assert nouns.get("server/health", service="kagzi.v1.AdminService")["message"] == "serving"
    nouns.get("server/health", service="nothing", code=404)


def test_figures(nouns: Nouns) -> None:
    nouns.do("runs", {"workflow": "mail"}, code=201)
    figures = nouns.get("stats")
    assert figures["open"]["pending"] == 1
    assert figures["open_is_capped"] is False
    assert nouns.get("stats", workflow="other")["open"]["pending"] == 0
    nouns.do("runs", {"workflow": "mail"}, code=201)
    for step in ("1m", "5m", "1h", "1d"):
        steps = nouns.get("stats", step=step)
        assert steps["step"] == step
        assert sum(minute["started"] for minute in steps["minutes"]) >= 1
    for query, field in (
        ({"since": "2099-01-01T00:00:00Z"}, "since"),
        ({"since": "yesterday"}, "since"),
        ({"until": "2026-01-01T00:00:00"}, "until"),
        ({"until": "0001-01-01T00:00:00Z"}, "until"),
        ({"workflow": "\0"}, "workflow"),
        ({"step": "2h"}, "step"),
        ({"step": "1m", "since": "2026-01-01T00:00:00Z"}, "since"),
    ):
        assert nouns.get("stats", code=400, **query)["field"] == field
