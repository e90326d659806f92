"""The TLS options of a command."""

from typing import NamedTuple


class TlsOptions(NamedTuple):
    """`--tls-ca`, `--tls-cert` and `--tls-key`. `typed`: at least one was typed. Those from the environment or the file
    apply only to addresses that use TLS."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    typed: bool = False


NO_TLS_OPTIONS = TlsOptions()
