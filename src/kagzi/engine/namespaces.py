"""Which namespaces there are, for servers that do not let new ones come into being by themselves."""

import asyncio

from ..core.errors import NotFound
from ..core.limits import Settings
from ..store.protocol import Store
from . import checks

_REMEMBERED_S = 10.0
_REMEMBERED = 10_000


class Namespaces:
    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._strict = settings.strict_namespaces
        self._known_until: dict[str, float] = {}

    async def check(self, namespace: str) -> None:
        """Raises InvalidArgument for a bad name, and NotFound for an unknown one if namespaces are strict."""
        checks.name(namespace, "namespace")
        if not self._strict:
            return
        now = asyncio.get_running_loop().time()
        if self._known_until.get(namespace, 0.0) > now:
            return
        if await self._store.get_namespace(namespace) is None:
            raise NotFound(
                f"namespace {namespace} not found. Create it first: this server runs with --strict-namespaces.",
                subject="namespace",
                subject_id=namespace,
            )
        if len(self._known_until) >= _REMEMBERED:
            self._known_until.clear()
        self._known_until[namespace] = now + _REMEMBERED_S
