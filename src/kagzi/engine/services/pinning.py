"""Pins runs that workers start (children, successors) to a version, as any other run: the requested one, else the
default."""

import msgspec

from ...core.errors import InvalidArgument, PreconditionFailed
from ...core.records import RunKey
from ...core.run.commands import Command, ContinueAsNew, StartChild
from ...store.protocol import Store, TypeKey
from ..checks.operations import Operations
from ..checks.schemas import Schemas, input_misfit, input_refusal
from ..matching.lease_registry import LeaseRegistry
from .versions import Versions

STARTING = frozenset({StartChild, ContinueAsNew})


class Pinning:
    def __init__(self, store: Store, *, versions: Versions, schemas: Schemas, registry: LeaseRegistry) -> None:
        self._store = store
        self._versions = versions
        self._schemas = schemas
        self._registry = registry

    def is_known(self, command: Command) -> bool:
        """Whether `pin_known` can pin it without a read of the store."""
        if isinstance(command, StartChild) and command.refusal is not None:
            return False
        key = self._known_key(command)
        if key is None:
            return False
        try:
            version = self._versions.pin_known(key, _requested(command))
        except PreconditionFailed:
            return False  # whether that matters has to be read, too
        return version is not None and (not isinstance(command, StartChild) or self._fits(key, version, command))

    def _fits(self, key: TypeKey, version: str, command: StartChild) -> bool:
        """Whether the input of a child is known to be acceptable."""
        known = self._schemas.known(key, version)
        return known is not None and input_misfit(known, command.start.input) is None

    def pin_known(self, command: Command) -> Command:
        """The command with its version; only if `is_known`."""
        key = self._known_key(command)
        version = None if key is None else self._versions.pin_known(key, _requested(command))
        assert version is not None
        return _with_version(command, version)

    async def pin(self, command: Command) -> Command:
        """Returns commands other than STARTING unchanged. Raises PreconditionFailed for a deprecated version,
        InvalidArgument for the input of a child that this version would refuse."""
        if isinstance(command, StartChild):
            return await self._pin_child(command)
        if isinstance(command, ContinueAsNew):
            return await self._pin_successor(command)
        return command

    async def _pin_child(self, command: StartChild) -> Command:
        if command.refusal is not None:
            return command
        version = await self._versions.pin(_child_key(command), _requested(command))
        misfit = await self._schemas.input_misfit(_child_key(command), version, command.start.input)
        if misfit is not None:
            raise input_refusal(command.start.workflow_type, version, misfit)
        return _with_version(command, version)

    async def _pin_successor(self, command: ContinueAsNew) -> Command:
        key = TypeKey(command.run.namespace, await self._type_of(command.run))
        if not key.workflow_type:
            return command
        try:
            version = await self._versions.pin(key, _requested(command))
        except PreconditionFailed:
            if command.version:
                raise
            return command  # all versions are deprecated: it stays with the version of its worker
        return _with_version(command, version)

    def _known_key(self, command: Command) -> TypeKey | None:
        if isinstance(command, StartChild):
            return _child_key(command)
        holding = self._registry.get(command.run.run_id)
        if holding is None or not holding.workflow_type:
            return None
        return TypeKey(command.run.namespace, holding.workflow_type)

    async def _type_of(self, run: RunKey) -> str:
        holding = self._registry.get(run.run_id)
        if holding is not None and holding.workflow_type:
            return holding.workflow_type
        record = await self._store.get_run(run.namespace, run_id=run.run_id)
        return "" if record is None else record.workflow_type


async def checked_and_pinned(operations: Operations, pinning: Pinning, command: Command) -> Command:
    """The command to write: with its version, or with the refusal that it records. Raises InvalidArgument,
    PreconditionFailed for a refusal that has no place in the history."""
    try:
        return await pinning.pin(operations.check(command))
    except (InvalidArgument, PreconditionFailed) as error:
        if (recorded := operations.refusal_to_record(command, error)) is None:
            raise
        return recorded


def _child_key(command: StartChild) -> TypeKey:
    return TypeKey(command.run.namespace, command.start.workflow_type)


def _requested(command: Command) -> str:
    """The requested version; empty if none is requested."""
    if isinstance(command, StartChild):
        return command.start.version or ""
    return (command.version or "") if isinstance(command, ContinueAsNew) else ""


def _with_version(command: Command, version: str) -> Command:
    if isinstance(command, StartChild):
        return msgspec.structs.replace(command, start=msgspec.structs.replace(command.start, version=version or None))
    assert isinstance(command, ContinueAsNew)
    return msgspec.structs.replace(command, version=version or None)
