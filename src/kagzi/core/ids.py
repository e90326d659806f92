"""Identifiers. Run ids are UUIDv7: they sort by the time they were made, so indexes grow at one end."""

from uuid import UUID

from .times import US_PER_MS, Timestamp

_RANDOM_BITS = 62


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


def is_uuid(text: str) -> bool:
    """Whether `text` is a UUID in its canonical form: 36 characters, lower case."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
