"""Compares the limits that workflows declare with the server's when a worker starts, and applies them if requested."""

import logging
from collections.abc import Mapping

from ....core.errors import KagziError
from ....core.workflow_types.queues import TypeLimitKeywords, TypeLimits, checked_limits
from ....v1 import admin_pb2 as pb
from ....wire.queues import read_limits, write_limits
from ...transport.connection import Connection

logger = logging.getLogger("kagzi.worker")


async def sync_limits(
    connection: Connection, namespace: str, declared: Mapping[str, TypeLimitKeywords], *, apply: bool
) -> None:
    """Log the declared limits that differ from the server's; with `apply`, set them. With `apply`, raises the errors of
    the server; without, logs them, so that a worker also starts where it may not read limits."""
    for workflow_type, limits in declared.items():
        try:
            await _sync_type(connection, namespace, workflow_type, limits, apply=apply)
        except KagziError as error:
            if apply:
                raise
            logger.info(
                "workflow %r: its limits could not be compared with those of its code: %s", workflow_type, error
            )


async def _sync_type(
    connection: Connection, namespace: str, workflow_type: str, limits: TypeLimitKeywords, *, apply: bool
) -> None:
    wanted = checked_limits(limits)
    request = pb.ListWorkflowTypesRequest(namespace_id=namespace, workflow_type=workflow_type)
    response = await connection.call(lambda link: link.admin.ListWorkflowTypes, request)
    present = next(map(read_limits, response.types), TypeLimits())
    differing = [name for name in limits if getattr(present, name) != getattr(wanted, name)]
    if not differing:
        return
    changes = ", ".join(
        f"{name} {_text(getattr(present, name))} -> {_text(getattr(wanted, name))}" for name in differing
    )
    if not apply:
        logger.warning(
            "workflow %r: its code declares other limits than the server has: %s. They are not applied: start a worker "
            "with apply_limits=True (kagzi worker --apply-limits), or change the code",
            workflow_type,
            changes,
        )
        return
    changed = write_limits(wanted)
    changed.workflow_type = workflow_type
    update = pb.UpdateWorkflowTypeRequest(namespace_id=namespace, type=changed, fields=differing)
    await connection.call(lambda link: link.admin.UpdateWorkflowType, update)
    logger.warning("workflow %r: the limits that its code declares are applied: %s", workflow_type, changes)


def _text(limit: object) -> str:
    return "none" if limit is None else str(limit)
