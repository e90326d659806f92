"""Whatever is sent, the answer is not a 5xx, a refusal is a problem that names what to fix, and the server goes on.

A few requests for each route; `make http-fuzz` sends all of them."""

import random

from kagzi.server.http.routes import routes
from tests.server.http.hostile import names_in, requests_of, send
from tests.server.http.nouns import Nouns
from tests.server.http.world import World

EACH = 6
ROUTES = routes()


def test_nothing_breaks(api: World) -> None:
    names = names_in(api)
    for route in ROUTES:
        for request in random.Random(route.method + route.path).sample(list(requests_of(route, names)), EACH):
            send(api.client, request)
    assert api.client.get("/server/health").json()["status"] == "serving"


def test_a_namespace_that_is_deleted_is_not_there(nouns: Nouns) -> None:
    nouns.do("namespaces", {"namespace": "gone"}, code=201)
    nouns.world.data.engine.namespaces._on_deleted = lambda: None  # it stays on its way out until the next chores
    nouns.delete("namespaces/gone", confirm="gone")
    about_one = [route for route in ROUTES if route.namespaced]
    for route in about_one:
        request = next(requests_of(route, dict.fromkeys(("run", "schedule", "worker"), "none")))
        answer = send(nouns.world.client, request._replace(path=f"{request.path.partition('?')[0]}?namespace=gone"))
        assert answer.status_code in (400, 404), (request, answer.text)
    assert len(about_one) > 50
    assert nouns.get("namespaces/gone")["deleting"] is True
    assert nouns.get("schedules", namespace="never used")["rows"] == []
