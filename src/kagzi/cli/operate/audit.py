"""`kagzi audit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..options import DURATION, Server
from ..output import Rows, list_command
from ..times import now
from ..views import cells, view

if TYPE_CHECKING:
    from datetime import timedelta

    from ...sdk.client.operations.keys import AuditRecord


@click.command()
@click.option("--since", type=DURATION, help="Only changes since this long ago.")
@click.option("--until", type=DURATION, help="Only changes until this long ago.")
@click.option("--everywhere", is_flag=True, help="All namespaces instead of one.")
@list_command("change", limit=100)
def audit(
    *, since: timedelta | None, until: timedelta | None, everywhere: bool, limit: int, server: Server
) -> Rows[AuditRecord]:
    """List administrative changes, latest first, with the key that made them."""
    at = now()
    records = server.ask_all(
        lambda client: client.keys.audit(
            since=None if since is None else at - since,
            until=None if until is None else at - until,
            everywhere=everywhere,
            limit=limit,
        )
    )
    return Rows(records, _view, _row, "No administrative changes.")


def _view(record: AuditRecord) -> dict[str, Any]:
    return view(record, "audit_id=id", "at", "key_id?", "key_name?", "action", "namespace", "subject", "details")


def _row(record: AuditRecord) -> dict[str, str]:
    return {
        **cells(record, "at", "action", "namespace", "subject"),
        "by": f"{record.key_name} ({record.key_id})" if record.key_id else "",
        "details": ", ".join(f"{name}={value}" for name, value in record.details.items()),
    }
