"""The project file. An option's value comes from its flag, then the environment, then the file, then the default.

The file is `kagzi.toml`, or `[tool.kagzi]` of `pyproject.toml`, in the working directory: one flat table for all
commands. The server reads its own settings (server/config.py); the rest is given to click here as defaults.
"""

from pathlib import Path
from typing import Any

from ..core.errors import InvalidArgument
from .exits import Exit, Stop

# Commands that connect to a server. The server itself reads its settings, and the others need none.
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
"""Of `kagzi worker`: keys of the file, and its parameters. `processes` is the server's."""
# Of clients: `tls_cert` and `tls_key` are the server's.
CLIENT_TLS = {"tls_ca": "tls_ca", "client_tls_cert": "tls_cert", "client_tls_key": "tls_key"}


def default_map(directory: Path | None = None) -> dict[str, Any]:
    """Defaults by command and parameter. Raises Stop for a file that cannot be read or has an unknown key."""
    directory = directory or Path.cwd()
    if not _mentions_kagzi(directory):
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


def _mentions_kagzi(directory: Path) -> bool:
    """Without it, a command does not pay for importing the server's configuration."""
    if (directory / "kagzi.toml").exists():
        return True
    try:
        return b"kagzi" in (directory / "pyproject.toml").read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True  # reading it will say why it cannot be read
