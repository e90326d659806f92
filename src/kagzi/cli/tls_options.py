"""How a command connects with TLS, as its options say."""

from typing import NamedTuple


class TlsOptions(NamedTuple):
    """`--tls-ca`, `--tls-cert` and `--tls-key`. `typed`: some of them were, and are not only in the environment or the
    file, where they are for addresses that want TLS."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    typed: bool = False


NO_TLS_OPTIONS = TlsOptions()
