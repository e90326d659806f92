"""`kagzi delete`."""

from collections.abc import Sequence
from typing import Any

import click

from ..options import address_options, json_option
from .bulk import bulk_options, refuse_filters, run_bulk


@click.command()
@click.argument("run", metavar="[RUN]", default="", required=False)
@bulk_options
@click.option("--reason", default="", help="Reason, kept with the operation.")
@json_option
@address_options
def delete(*, run: str, yes: bool, filters: Sequence[tuple[str, str]], **options: Any) -> int:
    """Delete runs that have ended, with their history.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Without RUN, options choose the runs. Either way the count
    is shown, and --yes deletes them. Runs that have not ended are kept.
    """
    if run:
        named = {
            key: value for key, value in options.items() if key not in ("reason", "as_json", "address", "namespace")
        }
        refuse_filters(run, False, filters, named)
    return run_bulk("delete", run=run, yes=yes, filters=filters, **options)
