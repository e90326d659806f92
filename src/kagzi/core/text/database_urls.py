"""Validates PostgreSQL URLs, without showing any part of them.

An unescaped `/`, `?`, `#` or `@` in a password shifts the boundaries between password, host and database: an error that
names the host or the database would then show a part of the password.
"""

import re
from urllib.parse import urlsplit

from ..errors import InvalidArgument

_HOST = re.compile(r"(\[[0-9A-Za-z:.%]+\]|[^:\[\]]*)(:[0-9]*)?")
_OPTION = re.compile(r"([a-z_]+)=(.*)")
_WITH_AT_SIGN = ("user", "password", "sslpassword", "host", "options", "application_name")  # `?user=name@tenant`


def check_database_url(url: str, *, field: str = "db") -> None:
    """Raises InvalidArgument, which shows no part of the URL."""
    if not _is_readable(url):
        raise InvalidArgument(
            f"{field} cannot be read as a URL like postgresql://user:password@host:5432/database?option=value. It is "
            "not shown, because it may contain a password. Percent-encode special characters in user and password: "
            "/ as %2F, ? as %3F, # as %23, @ as %40, [ as %5B, ] as %5D.",
            field=field,
        )


def _is_readable(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket, or a Unicode character that resembles a URL delimiter
        return False
    user, _, hosts = parts.netloc.rpartition("@")
    if "@" in user or "@" in parts.path or "#" in url:
        return False
    if not all(_HOST.fullmatch(host) for host in hosts.split(",")):
        return False
    for option in filter(None, parts.query.split("&")):
        match = _OPTION.fullmatch(option)
        if match is None or ("@" in match[2] and match[1] not in _WITH_AT_SIGN):
            return False
    return True
