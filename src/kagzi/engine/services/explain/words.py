"""Text for the values in an explanation."""

from datetime import timedelta

from ....core.duration import format_duration
from ....core.times import US_PER_S, Timestamp, to_datetime


def count_words(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def because_words(reason: str) -> str:
    return f" ({brief(reason)})" if reason else ""


def brief(text: str, characters: int = 300) -> str:
    line = " ".join(text.split())
    return (line if len(line) <= characters else line[:characters] + "...").rstrip(".")


def span_words(span_us: int) -> str:
    """In whole seconds: `2m 29s`."""
    return format_duration(timedelta(seconds=round(span_us / US_PER_S)))


def time_words(at: Timestamp | None) -> str:
    return "" if at is None else to_datetime(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
