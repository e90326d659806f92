"""The only hook through which the SDK reaches a server in its own process. Loaded by name, if the address needs it."""

from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import Protocol, cast

from ...wire.calls.call import OpenCall

_MODULE = "kagzi.embedded"


class Embedded(Protocol):
    """The connection to the process that serves a database file: this one, or another that opened it first."""

    @property
    def target(self) -> str:
        """The gRPC target of the process that serves now."""
        ...

    @property
    def metadata(self) -> Sequence[tuple[str, str]]:
        """Metadata that proves that the caller may read the file."""
        ...

    @property
    def open_call(self) -> OpenCall | None:
        """Begins calls within this process, if this process serves."""
        ...

    def note_worker(self, namespace: str, worker_id: str) -> None:
        """A worker lives in this process. If this process serves the file and dies, the next server need not wait until
        the leases of that worker end."""
        ...

    async def renew(self) -> None:
        """Find out which process serves; serve if none does. `target` and `metadata` are then up to date."""
        ...

    async def close(self) -> None: ...


async def open_embedded(address: str) -> Embedded:
    module = import_module(_MODULE)
    opener = cast("Callable[[str], Awaitable[Embedded]]", module.open_embedded)
    return await opener(address)
