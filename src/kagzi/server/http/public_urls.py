"""Parses public URLs: of this server as users reach it, and of their tracing tool."""

from urllib.parse import urlsplit

from ...core.errors import InvalidArgument

TRACE_ID = "{trace_id}"
"""The placeholder for the trace id in the setting `trace_url`."""


def public_url_of(text: str, key: str) -> str:
    """The URL without a trailing slash. Raises InvalidArgument."""
    url = _url(text, key, "https://kagzi.example.com, with the path that a proxy serves it below").rstrip("/")
    if "?" in url or "#" in url:
        raise InvalidArgument(f"{key}={text!r} must end with the path, without a query.", field=key)
    return url


def trace_url_of(text: str, key: str) -> str:
    """Raises InvalidArgument."""
    example = f"https://traces.example.com/trace/{TRACE_ID}"
    url = _url(text, key, example)
    if TRACE_ID not in url:
        raise InvalidArgument(f"{key}={text!r} has no {TRACE_ID} in it. Write {example}.", field=key)
    return url


def _url(text: str, key: str, example: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or any(map(str.isspace, text)):
        raise InvalidArgument(f"{key}={text!r} is not an address that a browser opens. Write {example}.", field=key)
    return text
