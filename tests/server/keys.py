"""Keys for tests: the first one is made in the database, before a server serves it; others by that one."""

from collections.abc import Sequence
from datetime import timedelta

from kagzi.cli.operate.offline_keys import open_offline
from kagzi.core.access import EVERY_NAMESPACE, Scope
from kagzi.core.times import us_from_timedelta
from kagzi.system import SystemClock
from kagzi.v1 import key_pb2
from kagzi.wire.common import write_time
from tests.server.apart_world import Caller, keys


async def first_key(database_url: str) -> str:
    """One that may do everything."""
    async with open_offline(database_url) as offline:
        return (await offline.keys.create(EVERY_NAMESPACE, "operator", [Scope.ADMIN])).text


async def a_key(
    operator: Caller, namespace: str, scopes: Sequence[str], expires_in: timedelta | None = None
) -> tuple[str, str]:
    """Its id, and the key."""
    request = key_pb2.CreateKeyRequest(namespace_id=namespace, name="of a test", scopes=scopes)
    if expires_in is not None:
        request.expires_at.CopyFrom(write_time(SystemClock().now() + us_from_timedelta(expires_in)))
    made = await operator.one(keys("CreateKey"), request)
    return made.key.key_id, made.secret


async def revoke(operator: Caller, key_id: str) -> None:
    await operator.one(keys("RevokeKey"), key_pb2.RevokeKeyRequest(namespace_id=EVERY_NAMESPACE, key_id=key_id))
