"""`api`        a server in memory with a worker, shared by the tests of a module
`each_api`   one on each store
`http`       its client
`nouns`      calls in a namespace of the test's own; `each_nouns` on each store"""

from collections.abc import Generator

import httpx
import pytest

from tests.server.http.nouns import Nouns
from tests.server.http.world import World, world
from tests.support.migrated import MigratedPostgres


@pytest.fixture(scope="module")
def api() -> Generator[World]:
    with world() as made:
        yield made


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def each_api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    if request.param == "sqlite":
        with world(f"sqlite:///{tmp_path_factory.mktemp('db')}/kagzi.db") as made:
            yield made
        return
    migrated: MigratedPostgres = request.getfixturevalue("migrated_databases")
    with migrated.database() as url, world(url) as made:
        yield made


@pytest.fixture
def http(api: World) -> httpx.Client:
    return api.client


@pytest.fixture
def nouns(api: World, request: pytest.FixtureRequest) -> Nouns:
    return Nouns(api, request.node.name)


@pytest.fixture
def each_nouns(each_api: World, request: pytest.FixtureRequest) -> Nouns:
    return Nouns(each_api, request.node.name)
