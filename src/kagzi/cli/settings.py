"""The project file. Options take their value from the flag, the environment, the file or the default, in this order.

The file is `kagzi.toml`, or `[tool.kagzi]` in `pyproject.toml`, in the working directory: one flat table for all
commands. The server reads its own settings (server/config.py); the others become click's defaults here.
"""

import re
from pathlib import Path
from typing import Any

from ..core.errors import InvalidArgument
from .exits import Exit, Stop

# Commands that connect to a server. The server reads its settings itself, and the others need none.
CLIENTS = (
    *("start", "list", "count", "get", "explain", "open", "tail", "logs", "trace", "stats", "worker"),
    *("signal", "cancel", "terminate", "pause", "resume", "retry", "wake", "delete", "fork", "export", "import"),
    *(
        "check",
        "adopt",
        "diff",
        "replay",
        "bulk",
        "schedule",
        "workers",
        "workflows",
        "versions",
        "namespaces",
        "keys",
        "audit",
    ),
)
LOGS = ("log_level", "log_format")
WORKER = {"worker_processes": "processes", "worker_health": "health", "worker_apply_limits": "apply_limits"}
"""For `kagzi worker`: keys of the file and their parameters. `processes` is the server's setting."""
# For clients: `tls_cert` and `tls_key` are settings of the server.
CLIENT_TLS = {"tls_ca": "tls_ca", "client_tls_cert": "tls_cert", "client_tls_key": "tls_key"}

_TABLE = re.compile(rb"""kagzi["']?\s*[\].=]""")
"""In any pyproject.toml with a table for Kagzi, and usually not in one that only depends on it."""


def default_map(directory: Path | None = None) -> dict[str, Any]:
    """Defaults by command and parameter. Raises Stop for a file that cannot be read or has an unknown key."""
    directory = directory or Path.cwd()
    if not _may_have_settings(directory):
        return {}
    from ..server.config import SETTING_NAMES
    from ..server.settings_file import read_settings_file

    try:
        known = ("address", "namespace", "codec", "data", *WORKER, *CLIENT_TLS, *LOGS, *SETTING_NAMES)
        table = read_settings_file(directory, known)
    except InvalidArgument as error:
        raise Stop(Exit.USAGE, error.message) from error
    client = {key: table[key] for key in ("address", "namespace", "codec") if key in table}
    client.update({option: table[key] for key, option in CLIENT_TLS.items() if key in table})
    defaults: dict[str, Any] = dict.fromkeys(CLIENTS, client)
    defaults["dev"] = {key: table[key] for key in ("namespace", "data", *LOGS) if key in table}
    logs = {key: table[key] for key in LOGS if key in table}
    if logs:
        defaults["server"] = logs
    own = {parameter: table[key] for key, parameter in WORKER.items() if key in table}
    defaults["worker"] = {**client, **logs, **own}
    if "db" in table:
        url = {"url": table["db"]}
        defaults["db"] = {"migrate": url, "status": url, "partition": url}
    if "outbox" in table:
        defaults["outbox"] = {verb: {"url": table["outbox"]} for verb in ("list", "retry", "drop")}
    return defaults


def _may_have_settings(directory: Path) -> bool:
    """If false, a command avoids importing the server's configuration."""
    if (directory / "kagzi.toml").exists():
        return True
    try:
        return _TABLE.search((directory / "pyproject.toml").read_bytes()) is not None
    except FileNotFoundError:
        return False
    except OSError:
        return True  # reading it reports the error
