"""`client.keys`: creates, rotates and revokes API keys, and reads the audit log."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

from ....core.access import EVERY_NAMESPACE
from ....core.duration import Duration, parse_duration
from ....core.public import exported
from ....core.times import from_datetime, us_from_timedelta
from ....v1 import key_pb2 as pb
from ....v1.key_pb2_grpc import KeyServiceStub
from ....wire.common import write_duration, write_time
from ....wire.fields import reader
from ...transport.link import Link
from . import Operations

if TYPE_CHECKING:
    import grpc.aio

    from ....v1.key_pb2_grpc import KeyServiceAsyncStub


@exported
@dataclass(frozen=True, slots=True)
class KeyInfo:
    """An API key at the time of the call, without its secret."""

    id: str  #: its id, which is part of the key itself
    namespace: str  #: where it is valid; "*" is every namespace
    name: str  #: its name
    scopes: tuple[str, ...]  #: what it permits: "read", "client", "worker", "admin"
    created_at: datetime  #: when it was created
    expires_at: datetime | None  #: when it expires
    revoked_at: datetime | None  #: when it was revoked
    rotated_at: datetime | None  #: when it got its current secret; None: never rotated
    last_used_at: datetime | None  #: accurate to about a minute; None: never used


@exported
@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was created or rotated."""

    info: KeyInfo  #: the key without its secret
    key: str  #: the key itself, which is never shown again

    def __repr__(self) -> str:
        return f"NewKey(info={self.info!r}, key='kgz_{self.info.id}_...')"


@exported
@dataclass(frozen=True, slots=True)
class AuditRecord:
    """An administrative change."""

    id: str  #: its id
    at: datetime  #: when it was made
    key_id: str  #: the key that made it; empty if the server requires none
    key_name: str  #: the name of that key
    action: str  #: what was done: "key.create", "namespace.update", "type.pause" ...
    namespace: str  #: where; "*" is every namespace
    subject: str  #: what was changed
    details: Mapping[str, str]  #: the details of the change


read_key_info = reader(
    pb.Key, KeyInfo, names={"id": "key_id", "namespace": "namespace_id"}, scopes=lambda message: tuple(message.scopes)
)
read_audit_record = reader(pb.AuditEntry, AuditRecord, names={"id": "audit_id", "namespace": "namespace_id"})


def _keys(link: Link) -> "KeyServiceAsyncStub":
    return KeyServiceStub(cast("grpc.aio.Channel", link.channel))  # a stub uses only these methods of it


class Keys(Operations):
    """`client.keys`: who may call a server that requires keys. `everywhere` needs a key that is valid everywhere."""

    async def list(self, *, everywhere: bool = False, limit: int | None = None) -> AsyncIterator[KeyInfo]:
        """Keys of the namespace (of all namespaces: `everywhere`), newest first, at most `limit`. Expired and revoked
        keys stay in the list for a year."""
        request = pb.ListKeysRequest(namespace_id=self._of(everywhere=everywhere))
        async for key in self._backend.rows(lambda link: _keys(link).ListKeys, request, lambda page: page.keys, limit):
            yield read_key_info(key)

    async def create(
        self, name: str, *, scopes: Sequence[str], expires_in: Duration | None = None, everywhere: bool = False
    ) -> NewKey:
        """Create a key.

        Args:
            name: Its name.
            scopes: What it permits: "read" reads, "client" starts and changes runs and schedules, "worker" executes
                runs, "admin" changes limits, versions, namespaces and keys. "client" includes "read", and "admin" all.
            expires_in: How long it is valid. Default: until it is revoked.
            everywhere: It is valid in every namespace.
        """
        request = pb.CreateKeyRequest(
            namespace_id=self._of(everywhere=everywhere), name=name, scopes=scopes, request_id=self._backend.new_id()
        )
        if expires_in is not None:
            lasts_us = us_from_timedelta(parse_duration(expires_in, what="expires_in"))
            request.expires_at.CopyFrom(write_time(self._backend.connection.clock.now() + lasts_us))
        response = await self._backend.call(lambda link: _keys(link).CreateKey, request)
        return NewKey(read_key_info(response.key), response.secret)

    async def rotate(self, id: str, *, grace: Duration | None = None, everywhere: bool = False) -> NewKey:
        """Give the key `id` a new secret. The old one stays valid for `grace`, by default not at all. `everywhere`: the
        key may be of any namespace. Raises NotFound, and PreconditionFailed if it was revoked."""
        request = pb.RotateKeyRequest(
            namespace_id=self._of(everywhere=everywhere), key_id=id, request_id=self._backend.new_id()
        )
        if grace is not None:
            request.grace.CopyFrom(write_duration(us_from_timedelta(parse_duration(grace, what="grace"))))
        response = await self._backend.call(lambda link: _keys(link).RotateKey, request)
        return NewKey(read_key_info(response.key), response.secret)

    async def revoke(self, id: str, *, everywhere: bool = False) -> KeyInfo:
        """Revoke the key `id` for good: within 10 seconds on every server, also for open connections. `everywhere`: it
        may be of any namespace. Raises NotFound."""
        request = pb.RevokeKeyRequest(namespace_id=self._of(everywhere=everywhere), key_id=id)
        response = await self._backend.call(lambda link: _keys(link).RevokeKey, request)
        return read_key_info(response.key)

    async def audit(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        everywhere: bool = False,
        limit: int | None = None,
    ) -> AsyncIterator[AuditRecord]:
        """Administrative changes in the namespace (in all: `everywhere`), latest first, at most `limit`, at or after
        `since` and before `until`. They are kept for a year."""
        request = pb.ListAuditRequest(namespace_id=self._of(everywhere=everywhere))
        if since is not None:
            request.since.CopyFrom(write_time(from_datetime(since, what="since")))
        if until is not None:
            request.until.CopyFrom(write_time(from_datetime(until, what="until")))
        rows = self._backend.rows(lambda link: _keys(link).ListAudit, request, lambda page: page.entries, limit)
        async for entry in rows:
            yield read_audit_record(entry)

    def _of(self, *, everywhere: bool) -> str:
        return EVERY_NAMESPACE if everywhere else self._namespace
