"""The server names the fields of a request; people know options. Refusals are told in the words of the command they typed."""

import re

import click

# Where a field and the parameter of a command are called differently.
_PARAMETERS = {
    "cron_expr": "cron",
    "interval": "every",
    "limits.open_runs": "max_open_runs",
    "limits.running_runs": "max_running_runs",
    "limits.schedules": "max_schedules",
    "limits.sessions": "max_sessions",
    "limits.starts_per_second": "max_starts_per_second",
    "limits.stored_bytes": "max_stored_bytes",
    "max_catchup": "catchup",
    "max_running_per_key": "per_key",
    "next_fire_at": "next_at",
    "run_id": "run",
    "signal_name": "name",
    "starts_per_second": "rate",
    "starts_per_second_per_key": "per_key_rate",
    "workflow_type": "workflow",
}

# Quoted text is the user's own. A single word is a field only where a value is given with it: `priority=101`.
_WORD = re.compile(r"""'[^']*'|"[^"]*"|(?<![\w-])(?P<name>[a-z]+(?:[._][a-z]+)*)(?P<value>=(?=\S))?""")


def in_options(text: str, command: click.Command | None, field: str = "") -> str:
    """`max_running=0 is outside ...` becomes `--max-running 0 is outside ...`, if the command has that option.

    `field`: the one that was refused, also where it is an ordinary word.
    """
    if command is None:
        return text
    names = {parameter.name: _name(parameter) for parameter in command.params}

    def replaced(found: re.Match[str]) -> str:
        name, has_value = found["name"] or "", bool(found["value"])
        option = names.get(_PARAMETERS.get(name, name))
        if option is None or not (has_value or "_" in name or name == field):
            return found[0]
        return f"{option} " if has_value else option

    return _WORD.sub(replaced, text)


def _name(parameter: click.Parameter) -> str:
    """`--max-running`; an argument as it is shown in help."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return (parameter.metavar or parameter.name or "").strip("[].").upper()
