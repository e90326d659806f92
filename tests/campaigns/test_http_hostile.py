"""Hostile values at each place of each route of the HTTP API, to a server on each store: no answer is a 5xx, every
refusal names what to fix, and the server is as well after it as before."""

from collections import Counter

import pytest

from kagzi.server.http.routes import routes
from tests.server.http.hostile import names_in, requests_of, send
from tests.server.http.world import world

from .figures import Figures


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_nothing_breaks(store: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    figures = Figures("http-hostile")
    if figures.known(store):
        return
    url = f"sqlite:///{tmp_path_factory.mktemp('db')}/kagzi.db"
    if store == "postgresql":
        url = request.getfixturevalue("postgres_url")
    statuses: Counter[int] = Counter()
    with world(url) as api:
        names = names_in(api)
        for route in routes():
            statuses.update(send(api.client, hostile).status_code for hostile in requests_of(route, names))
        figures.put(store, {f"answered {status}": count for status, count in sorted(statuses.items())})
        assert api.ended(api.start("hello", input="after all"))["status"] == "completed"
