"""Many requests that a fuzzer makes of the OpenAPI document, to a server on each store: nothing is answered with 5xx,
with a status or a body that is not described, or accepts what the document forbids; and the server is as well after it
as before."""

import pytest

from tests.server.http.fuzz import Fuzzing
from tests.server.http.world import world

from .figures import Figures, number

REQUESTS = int(number("REQUESTS", 40))  # of each kind for each operation
SEEDS = int(number("SEEDS", 3))
OPEN = {  # a request may have closed the namespace, or limited it
    "enabled": True,
    "max_open_runs": None,
    "max_running_runs": None,
    "max_starts_per_second": None,
    "max_stored_bytes": None,
}
UNTOUCHED = "wordy"  # a workflow that the requests do not name


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_nothing_undocumented_is_answered(
    store: str, seed: int, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each seed has a store of its own: requests of the one before may have deprecated or paused everything."""
    figures, part = Figures("http-fuzz"), f"{store}, seed {seed}"
    if figures.known(part):
        return
    url = f"sqlite:///{tmp_path_factory.mktemp('db')}/kagzi.db"
    if store == "postgresql":
        url = request.getfixturevalue("postgres_url")
    with world(url) as api:
        fuzzing = Fuzzing(api, seed=seed)
        fuzzing.run(valid=REQUESTS, invalid=REQUESTS)
        assert not [status for status in fuzzing.statuses if status >= 500]
        figures.put(part, {f"answered {status}": count for status, count in sorted(fuzzing.statuses.items())})
        opened = api.client.patch("/namespaces/default", json=OPEN)
        assert opened.status_code == 200, opened.text
        assert api.ended(api.start(UNTOUCHED, input=1))["status"] == "completed"
