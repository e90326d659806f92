"""Describes the machine, the versions and the database of a bench, without which figures cannot be compared."""

import os
import platform
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from ..operate.version import PACKAGES, versions_of


def describe_machine() -> dict[str, Any]:
    load = os.getloadavg() if hasattr(os, "getloadavg") else None
    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_mb": _memory_mb(),
        "python_build": sysconfig.get_config_var("CONFIG_ARGS") or "",
        "python_optimised": is_optimised(),
        "load_average_before": list(load) if load else None,
    }


def describe_versions() -> dict[str, Any]:
    return {"commit": _commit(), **versions_of(*PACKAGES, "uvloop")}


async def describe_database(url: str) -> tuple[dict[str, Any], list[int]]:
    """The store and its durability, and the process ids of a PostgreSQL on this machine."""
    if url.startswith("sqlite:"):
        return {"kind": "sqlite", "journal_mode": "wal", "synchronous": "full"}, []
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        facts: dict[str, Any] = {"kind": "postgresql"}
        for name in ("server_version", "fsync", "synchronous_commit", "shared_buffers"):
            facts[name] = await connection.fetchval("select current_setting($1)", name)
        local = await connection.fetchval("select inet_server_addr() is null")
        rows = await connection.fetch("select pid from pg_stat_activity") if local else []
        return facts, [int(row["pid"]) for row in rows]
    finally:
        await connection.close()


def is_optimised() -> bool:
    """Whether this Python was built with profile-guided or link-time optimisation: otherwise it is about 7 % slower."""
    arguments = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    return "--enable-optimizations" in arguments or "--with-lto" in arguments


def _commit() -> str | None:
    root = Path(__file__).resolve().parents[4]
    if not (root / ".git").exists():
        return None
    try:
        head = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=root, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head.stdout.strip()


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    for line in text.splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _memory_mb() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1_048_576
    except (AttributeError, ValueError, OSError):
        return None
