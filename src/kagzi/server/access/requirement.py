"""What a gRPC method requires of its callers."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager

from ...core.access import EVERY_NAMESPACE, Caller
from ...engine import CALLER
from .access import Access
from .scopes import Need

HEADER = "authorization"


class Requirement:
    """The requirement of one method that is not public."""

    def __init__(self, access: Access, need: Need) -> None:
        self._access = access
        self._need = need

    async def enter(self, metadata: Iterable[tuple[str, str | bytes]] | None) -> Caller:
        """Authenticates the caller before the request is read. Raises Unauthenticated, Unavailable."""
        for key, value in metadata or ():
            if key == HEADER:
                text = value if isinstance(value, str) else value.decode(errors="replace")
                return self._access.remembered(text) or await self._access.caller_of(text)
        return await self._access.caller_of(None)

    def allow(self, caller: Caller, namespace: str) -> None:
        """Checks the scope once the namespace is known. Raises PermissionDenied. From here on, this task acts for the
        caller."""
        need = self._need
        self._access.require(caller, need.scope, EVERY_NAMESPACE if need.everywhere else namespace)
        CALLER.set(caller)

    def while_good(self, caller: Caller) -> AbstractAsyncContextManager[None]:
        return self._access.while_good(caller)
