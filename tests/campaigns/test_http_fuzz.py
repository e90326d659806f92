"""Many requests that a fuzzer makes of the OpenAPI document, to a server on each store: nothing is answered with 5xx,
with a status or a body that is not described, or accepts what the document forbids; and the server is as well after it
as before."""

from collections import Counter

import pytest

from tests.server.http.fuzz import Fuzzing
from tests.server.http.world import world

from .figures import Figures, number

REQUESTS = int(number("REQUESTS", 40))  # of each kind for each operation
SEEDS = int(number("SEEDS", 3))


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_nothing_undocumented_is_answered(
    store: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    figures = Figures("http-fuzz")
    if figures.known(store):
        return
    url = f"sqlite:///{tmp_path_factory.mktemp('db')}/kagzi.db"
    if store == "postgresql":
        url = request.getfixturevalue("postgres_url")
    answered: Counter[int] = Counter()
    with world(url) as api:
        for seed in range(SEEDS):
            fuzzing = Fuzzing(api, seed=seed)
            fuzzing.run(valid=REQUESTS, invalid=REQUESTS)
            assert not [status for status in fuzzing.statuses if status >= 500]
            answered += fuzzing.statuses
        figures.put(store, {f"answered {status}": count for status, count in sorted(answered.items())})
        assert api.ended(api.start("hello", input="after all"))["status"] == "completed"
