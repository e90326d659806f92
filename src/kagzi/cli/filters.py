"""Which runs are meant: the options of `kagzi list` and `kagzi count`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from ..core.states import RunStatus
from .options import Command, duration, key_value

if TYPE_CHECKING:
    from ..v1 import workflow_pb2


def filter_options(command: Command) -> Command:
    for option in (
        click.option("--parent", default="", metavar="RUN_ID", help="Only children of this run (its whole id)."),
        click.option("--since", type=duration, help="Only runs created in the last 2h, 1 day ..."),
        click.option("--label", "labels", multiple=True, type=key_value, help="All must match. May be repeated."),
        click.option("--workflow", "workflows", multiple=True, metavar="NAME", help="May be repeated."),
        click.option(
            "--status",
            "statuses",
            multiple=True,
            type=click.Choice([str(status) for status in RunStatus]),
            help="May be repeated.",
        ),
    ):
        command = option(command)
    return command


def run_filter(
    statuses: Sequence[str], workflows: Sequence[str], labels: dict[str, str], since: timedelta | None, parent: str
) -> workflow_pb2.WorkflowFilter:
    from ..core.times import us_from_timedelta
    from ..system import SystemClock
    from ..v1 import workflow_pb2
    from ..wire.common import write_time
    from ..wire.enums import RUN_STATUS_TO_WIRE

    return workflow_pb2.WorkflowFilter(
        statuses=[RUN_STATUS_TO_WIRE[RunStatus(status)] for status in statuses],
        workflow_types=workflows,
        labels=labels,
        created_after=None if since is None else write_time(SystemClock().now() - us_from_timedelta(since)),
        parent_run_id=parent.lower(),
    )
