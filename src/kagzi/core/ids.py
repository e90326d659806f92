"""Identifiers. Run ids are UUIDv7: they sort by creation time, so indexes grow at one end.

The last bits of a run id are a hash of its namespace: ids of two namespaces never collide, so an import into one
namespace cannot conflict with, or refer to, a run of another.
"""

import re
from functools import lru_cache
from hashlib import blake2b
from uuid import UUID

from .limits import NAME_BYTES
from .times import US_PER_MS, Timestamp

_CANONICAL = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FIRST, _LAST = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
_LAST_CHARACTER = chr(0x10FFFF)
_RANDOM_BITS = 62
_MARK_BITS = 24
RUN_RANDOM_BITS = _RANDOM_BITS - _MARK_BITS
_MARK = (1 << _MARK_BITS) - 1
_VARIANT_DIGITS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def uuid7(now: Timestamp, random_bits: int) -> str:
    """A UUIDv7 created at `now`. The 12 bits after the milliseconds hold the microseconds, so that ids created within
    one millisecond are sorted too; 62 bits come from `random_bits`."""
    milliseconds, microseconds = divmod(now, US_PER_MS)
    value = (milliseconds & ((1 << 48) - 1)) << 80
    value |= 0x7 << 76
    value |= ((microseconds << 12) // US_PER_MS & 0xFFF) << 64
    value |= 0b10 << _RANDOM_BITS
    value |= random_bits & ((1 << _RANDOM_BITS) - 1)
    return _canonical(f"{value:032x}")


def uuid4(random_hex: str) -> str:
    """A UUIDv4; its 122 bits come from the 32 hexadecimal digits of `random_hex`."""
    variant = _VARIANT_DIGITS[random_hex[16]]
    return f"{random_hex[:8]}-{random_hex[8:12]}-4{random_hex[13:16]}-{variant}{random_hex[17:20]}-{random_hex[20:]}"


def _canonical(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def uuid7_of(namespace: str, now: Timestamp, random_bits: int) -> str:
    """A UUIDv7 that ends with the hash of the namespace; RUN_RANDOM_BITS come from `random_bits`."""
    return uuid7(now, random_bits << _MARK_BITS | _mark(namespace))


def is_of(namespace: str, run_id: str) -> bool:
    """Whether the id has the hash of the namespace. Ids of older versions end with random bits."""
    return UUID(run_id).int & _MARK == _mark(namespace)


def made_of(namespace: str, run_id: str) -> str:
    """Maps the id of an imported run to an id of this namespace. Deterministic; an id of this namespace is returned
    unchanged."""
    if is_of(namespace, run_id):
        return run_id
    digest = blake2b(f"{namespace}\0{run_id}".encode(errors="surrogatepass"), digest_size=8).digest()
    variable = (int.from_bytes(digest) & ((1 << RUN_RANDOM_BITS) - 1)) << _MARK_BITS
    fixed = UUID(run_id).int >> _RANDOM_BITS << _RANDOM_BITS
    return str(UUID(int=fixed | variable | _mark(namespace)))


@lru_cache(maxsize=1_000)
def _mark(namespace: str) -> int:
    return int.from_bytes(blake2b(namespace.encode(errors="surrogatepass"), digest_size=_MARK_BITS // 8).digest())


def uuids_from(prefix: str) -> tuple[str, str] | None:
    """The first and the last UUID with this prefix, in upper or lower case; None if there is none."""
    prefix = prefix.lower()
    first, last = (prefix + blank[len(prefix) :] for blank in (_FIRST, _LAST))
    return (first, last) if is_uuid(first) else None


def texts_from(prefix: str) -> tuple[str, str]:
    """The first text with this prefix, and a text after all texts with it that are no longer than a name, in code point
    order."""
    kept = prefix.rstrip(_LAST_CHARACTER)
    if not kept:
        return prefix, _LAST_CHARACTER * NAME_BYTES
    following = ord(kept[-1]) + 1
    if 0xD800 <= following <= 0xDFFF:  # surrogates: invalid in text
        following = 0xE000
    return prefix, kept[:-1] + chr(following)


def is_uuid(text: str) -> bool:
    """Whether `text` is a UUID in its canonical form: 36 characters, lower case."""
    return _CANONICAL.fullmatch(text) is not None
