"""Shares one server's capacity between namespaces or workers: bytes in memory, and calls served at once. Each has a
limit, and all of them together have one."""

from collections import Counter
from datetime import timedelta

from .errors import ResourceExhausted, limit_reached
from .limits import SHARES

_RETRY_AFTER = timedelta(seconds=1)


class ByteBudget:
    """Each party may hold up to `each_bytes`. Once the total reaches `total_bytes`, a party may only hold up to
    `share_bytes`: a party that fills the total never takes the share of another."""

    __slots__ = ("_each_bytes", "_share_bytes", "_total_bytes", "used_bytes")

    def __init__(self, each_bytes: int, total_bytes: int, share_bytes: int) -> None:
        self._each_bytes = each_bytes
        self._total_bytes = total_bytes
        self._share_bytes = share_bytes
        self.used_bytes = 0  # by all parties

    def is_over(self, own_bytes: int) -> bool:
        """Whether a party that holds `own_bytes` must wait before it may hold more."""
        if own_bytes >= self._each_bytes:
            return True
        return self.used_bytes >= self._total_bytes and own_bytes >= self._share_bytes


class NamespaceBudget:
    """How many of a kind a server serves at once. Namespaces compete for `limit`. Beyond it, SHARES namespaces can
    still have `share` each: a namespace that uses up the limit cannot lock out the others."""

    def __init__(self, name: str, limit: int, share: int) -> None:
        self.name = name
        self.limit = limit
        self.share = share
        self._used: Counter[str] = Counter()
        self._total = 0

    def used(self, namespace: str) -> int:
        return self._used[namespace]

    def take(self, namespace: str) -> None:
        """Raises ResourceExhausted. Call `give_back` afterwards."""
        used = self._used[namespace]
        if self._total >= self.limit and (used >= self.share or self._total >= self.limit + SHARES * self.share):
            if not used:
                del self._used[namespace]
            raise self._exhausted(namespace, used)
        self._used[namespace] = used + 1
        self._total += 1

    def give_back(self, namespace: str) -> None:
        self._total -= 1
        self._used[namespace] -= 1
        if not self._used[namespace]:
            del self._used[namespace]

    def _exhausted(self, namespace: str, used: int) -> ResourceExhausted:
        whose = f"namespace {namespace!r} uses" if namespace else "callers without a namespace use"
        return ResourceExhausted(
            f"this server serves {self.limit} {self.name} at once and all are in use; {whose} {used}, and at "
            f"least {self.share} are guaranteed to each namespace. Close some, try again later, or use another server.",
            metadata={**limit_reached(self.name.replace(" ", "_"), self.limit), "namespace": namespace},
            retry_after=_RETRY_AFTER,
        )
