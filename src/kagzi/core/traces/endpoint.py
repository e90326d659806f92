"""Where spans are sent: the address of a collector, OTLP over HTTP."""

from urllib.parse import urlsplit

from ..errors import InvalidArgument

PATH = "/v1/traces"


def endpoint_of(url: str, *, field: str = "otlp") -> str:
    """Adds the path of the protocol to an address without one. Raises InvalidArgument if it is not an HTTP address."""
    if not url.startswith(("http://", "https://")) or not urlsplit(url).netloc:
        raise InvalidArgument(
            f"{field}={url!r} is not the address of a collector: it must begin with http:// or https://, as in "
            "http://collector:4318.",
            field=field,
        )
    return url.rstrip("/") + PATH if urlsplit(url).path in ("", "/") else url
