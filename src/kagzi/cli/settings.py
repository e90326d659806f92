"""Where an option's value comes from: flag, then environment, then file, then default.

The file is `kagzi.toml`, or `[tool.kagzi]` of `pyproject.toml`, in the working directory: one flat table for all commands. What is
the server's, the server reads itself (server/config.py); the rest is handed to click here, which asks flag and environment first.
"""

from pathlib import Path
from typing import Any

from ..core.errors import InvalidArgument
from .exits import Exit, Stop

# Of all others the server reads its settings itself, or there is no server to talk to.
CLIENTS = (
    *("start", "list", "count", "get", "explain", "tail", "stats", "worker"),
    *("signal", "cancel", "terminate", "pause", "resume", "retry", "delete", "fork", "export", "import"),
    *("bulk", "schedule", "workers", "workflows", "versions", "namespaces"),
)
LOGS = ("log_level", "log_format")


def default_map(directory: Path | None = None) -> dict[str, Any]:
    """What the file says, by command and parameter. Raises Stop for a file that cannot be read or has an unknown key."""
    directory = directory or Path.cwd()
    if not _mentions_kagzi(directory):
        return {}
    from ..server.config import SETTING_NAMES
    from ..server.settings_file import read_settings_file

    try:
        table = read_settings_file(directory, ("address", "namespace", "data", *LOGS, *SETTING_NAMES))
    except InvalidArgument as error:
        raise Stop(Exit.USAGE, error.message) from error
    client = {key: table[key] for key in ("address", "namespace") if key in table}
    defaults: dict[str, Any] = dict.fromkeys(CLIENTS, client)
    defaults["dev"] = {key: table[key] for key in ("namespace", "data", *LOGS) if key in table}
    logs = {key: table[key] for key in LOGS if key in table}
    if logs:
        defaults["server"] = logs
        defaults["worker"] = {**client, **logs}
    if "db" in table:
        url = {"url": table["db"]}
        defaults["db"] = {"migrate": url, "status": url, "partition": url}
    return defaults


def _mentions_kagzi(directory: Path) -> bool:
    """Where there is nothing to read, a command does not pay for the server's configuration."""
    if (directory / "kagzi.toml").exists():
        return True
    try:
        return b"kagzi" in (directory / "pyproject.toml").read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True  # whoever reads it says why it cannot be read
