"""A refusal names what the caller sent, and nothing of what the caller wrote is changed."""

import pytest

from kagzi.server.http.views.field_names import field_name, in_words


@pytest.mark.parametrize(
    ("field", "message", "name", "words"),
    [
        ("page_size", "page_size=0 is outside 1..1000.", "size", "size=0 is outside 1..1000."),
        (
            "interval",
            "cron_expr and interval are both given. Give one.",
            "every",
            "cron and every are both given. Give one.",
        ),
        (
            "timezone",
            "timezone is given with an interval, which has no time zone. Leave it out, or use cron_expr.",
            "timezone",
            "timezone is given with an interval, which has no time zone. Leave it out, or use cron.",
        ),
        (
            "cron_expr",
            "cron_expr='a cron_expr' is none.",
            "cron",
            "cron='a cron_expr' is none.",
        ),
        ("limits.sessions", "limits.sessions=-1 is outside 0..9.", "max_sessions", "max_sessions=-1 is outside 0..9."),
        ("reason", "reason is too long.", "reason", "reason is too long."),
        ("workflow_types", "workflow_types is empty. Name one.", "workflow", "workflow is empty. Name one."),
    ],
)
def test_names(field: str, message: str, name: str, words: str) -> None:
    assert field_name(field) == name
    assert in_words(message, field) == words
