"""Identifiers. Run ids are UUIDv7: they sort by the time they were made, so indexes grow at one end.

The last bits of a run id are the mark of its namespace: two namespaces have no id in common, so that what one brings in
(an import) is never in the way of another, and never names what is another's.
"""

import re
from functools import lru_cache
from hashlib import blake2b
from uuid import UUID

from .times import US_PER_MS, Timestamp

_CANONICAL = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RANDOM_BITS = 62
_MARK_BITS = 24
RUN_RANDOM_BITS = _RANDOM_BITS - _MARK_BITS
_MARK = (1 << _MARK_BITS) - 1


def uuid7(now: Timestamp, random_bits: int) -> str:
    """A UUIDv7 made at `now`. The 12 bits after the milliseconds hold the microseconds, so that ids made within one
    millisecond sort too; 62 bits come from `random_bits`."""
    milliseconds, microseconds = divmod(now, US_PER_MS)
    value = (milliseconds & ((1 << 48) - 1)) << 80
    value |= 0x7 << 76
    value |= ((microseconds << 12) // US_PER_MS & 0xFFF) << 64
    value |= 0b10 << _RANDOM_BITS
    value |= random_bits & ((1 << _RANDOM_BITS) - 1)
    return str(UUID(int=value))


def uuid7_of(namespace: str, now: Timestamp, random_bits: int) -> str:
    """The same with the mark of the namespace at its end; RUN_RANDOM_BITS come from `random_bits`."""
    return uuid7(now, random_bits << _MARK_BITS | _mark(namespace))


def is_of(namespace: str, run_id: str) -> bool:
    """Whether the id has the mark of the namespace. Ids made before there were marks have any."""
    return UUID(run_id).int & _MARK == _mark(namespace)


def made_of(namespace: str, run_id: str) -> str:
    """The id in this namespace of a run that comes from elsewhere: always the same, and the same id if it is of the
    namespace."""
    if is_of(namespace, run_id):
        return run_id
    digest = blake2b(f"{namespace}\0{run_id}".encode(errors="surrogatepass"), digest_size=8).digest()
    variable = (int.from_bytes(digest) & ((1 << RUN_RANDOM_BITS) - 1)) << _MARK_BITS
    fixed = UUID(run_id).int >> _RANDOM_BITS << _RANDOM_BITS
    return str(UUID(int=fixed | variable | _mark(namespace)))


@lru_cache(maxsize=1_000)
def _mark(namespace: str) -> int:
    return int.from_bytes(blake2b(namespace.encode(errors="surrogatepass"), digest_size=_MARK_BITS // 8).digest())


def is_uuid(text: str) -> bool:
    """Whether `text` is a UUID in its canonical form: 36 characters, lower case."""
    return _CANONICAL.fullmatch(text) is not None
