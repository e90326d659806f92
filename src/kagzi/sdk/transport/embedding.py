"""The one hook through which the SDK reaches a server in its own process. Loaded by name, when an address asks for
it."""

from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import Protocol, cast

from ...wire.calls.call import OpenCall

_MODULE = "kagzi.embedded"


class Embedded(Protocol):
    """A way to whoever serves a database file: this process, or another one that opened it first."""

    @property
    def target(self) -> str:
        """The gRPC target of who serves now."""
        ...

    @property
    def metadata(self) -> Sequence[tuple[str, str]]:
        """What proves to it that the caller may read the file."""
        ...

    @property
    def open_call(self) -> OpenCall | None:
        """The way within this process, if it is this one that serves."""
        ...

    def note_worker(self, namespace: str, worker_id: str) -> None:
        """A worker lives in this process. If this process serves the file and dies, whoever serves it next need not
        wait until the leases of that worker run out."""
        ...

    async def renew(self) -> None:
        """Find out anew who serves; become the one if nobody does. `target` and `metadata` are then up to date."""
        ...

    async def close(self) -> None: ...


async def open_embedded(address: str) -> Embedded:
    module = import_module(_MODULE)
    opener = cast("Callable[[str], Awaitable[Embedded]]", module.open_embedded)
    return await opener(address)
