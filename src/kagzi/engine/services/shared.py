"""Caches expensive reads: one read serves all callers within a few seconds."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")

_KEYS = 1_000  # the most recently used are kept


class _Entry(Generic[Value]):
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.read_s = float("-inf")
        self.value: Value | None = None


class Shared(Generic[Value]):
    """A value that is at most `age_s` old, for each key. Concurrent callers wait for one read; if it fails, only its
    own caller gets the error."""

    def __init__(self, age_s: float, keys: int = _KEYS) -> None:
        self._age_s = age_s
        self._keys = keys
        self._entries: OrderedDict[Hashable, _Entry[Value]] = OrderedDict()

    async def get(self, key: Hashable, read: Callable[[], Awaitable[Value]]) -> Value:
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
            if len(self._entries) > self._keys:
                self._entries.popitem(last=False)
        else:
            self._entries.move_to_end(key)
        async with entry.lock:
            loop = asyncio.get_running_loop()
            if entry.value is None or loop.time() - entry.read_s >= self._age_s:
                began_s = loop.time()
                entry.value = await read()
                entry.read_s = began_s
            return entry.value
