"""Runs that workers start (children, successors) get their version as any other: the one asked for, else the default."""

import msgspec

from ..core.commands import Command, ContinueAsNew, StartChild
from ..core.errors import PreconditionFailed
from ..core.records import RunKey
from ..store.protocol import Store, TypeKey
from .holders import Holders
from .versions import Versions

STARTING = frozenset({StartChild, ContinueAsNew})


class Pinning:
    def __init__(self, store: Store, *, versions: Versions, holders: Holders) -> None:
        self._store = store
        self._versions = versions
        self._holders = holders

    async def pin(self, command: Command) -> Command:
        """Commands of other classes than STARTING as they are. Raises PreconditionFailed for a deprecated version."""
        if isinstance(command, StartChild):
            return await self._pin_child(command)
        if isinstance(command, ContinueAsNew):
            return await self._pin_successor(command)
        return command

    async def _pin_child(self, command: StartChild) -> StartChild:
        start = command.start
        try:
            version = await self._versions.pin(TypeKey(command.run.namespace, start.workflow_type), start.version or "")
        except PreconditionFailed:
            if await self._store.get_step(command.run, command.step_id) is None:
                raise
            return command  # a repeat: the child was started before
        return msgspec.structs.replace(command, start=msgspec.structs.replace(start, version=version or None))

    async def _pin_successor(self, command: ContinueAsNew) -> ContinueAsNew:
        key = TypeKey(command.run.namespace, await self._type_of(command.run))
        if not key.workflow_type:
            return command
        try:
            version = await self._versions.pin(key, command.version or "")
        except PreconditionFailed:
            if command.version:
                raise
            return command  # nothing but deprecated versions: it goes on where its worker is
        return msgspec.structs.replace(command, version=version or None)

    async def _type_of(self, run: RunKey) -> str:
        holding = self._holders.get(run.run_id)
        if holding is not None and holding.workflow_type:
            return holding.workflow_type
        record = await self._store.get_run(run.namespace, run_id=run.run_id)
        return "" if record is None else record.workflow_type
