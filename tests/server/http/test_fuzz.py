"""What the OpenAPI document says is what the server does, for requests of any kind. `make http-fuzz` tries many."""

from tests.server.http.fuzz import Fuzzing
from tests.server.http.world import World


def test_no_request_is_answered_with_something_undocumented(api: World) -> None:
    fuzzing = Fuzzing(api)
    fuzzing.run(valid=2, invalid=1, brief=True)
    assert {200, 400, 404} <= set(fuzzing.statuses)
    assert not [status for status in fuzzing.statuses if status >= 500]
