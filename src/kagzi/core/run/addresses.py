"""URLs of the pages of runs, below the address of a server's HTTP port."""

from functools import lru_cache
from urllib.parse import urlencode

from ..records import DEFAULT_NAMESPACE, RunKey


def page_of(run: RunKey, http_url: str) -> str:
    """The page of a run; empty if there is no HTTP port."""
    return f"{http_url}/runs/{run.run_id}{_suffix(run.namespace)}" if http_url else ""


@lru_cache(maxsize=1_000)
def _suffix(namespace: str) -> str:
    return "" if namespace == DEFAULT_NAMESPACE else f"?{urlencode({'namespace': namespace})}"


class LastServer:
    """The server that this process is, or was last connected to, for log lines that are written without access to a
    connection. `http_url` is empty if none is known."""

    def __init__(self) -> None:
        self.http_url = ""

    def page_of(self, run_id: str, namespace: str) -> str:
        return page_of(RunKey(namespace or DEFAULT_NAMESPACE, run_id), self.http_url)


LAST_SERVER = LastServer()
