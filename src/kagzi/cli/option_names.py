"""Maps field names to options. Servers name the fields of a request; a refusal must name what the user typed."""

import re

import click

# Fields whose command parameter has a different name.
_PARAMETERS = {
    "cron_expr": "cron",
    "interval": "every",
    "max_catchup": "catchup",
    "next_fire_at": "next_at",
    "run_id": "run",
    "signal_name": "name",
    "workflow_id": "id",
    "workflow_type": "workflow",
}

# Quoted text is the user's own. A plain word is a field only if a value follows: `priority=101`.
_WORD = re.compile(r"""'[^']*'|"[^"]*"|(?<![\w-])(?P<name>[a-z]+(?:[._][a-z]+)*)(?P<value>=(?=\S))?""")


# What the SDK says to programs, and what commands have instead.
_OF_PROGRAMS = {
    "tls=Tls(ca=FILE)": "--tls-ca FILE",
    "tls=Tls(certificate=FILE, key=FILE)": "--tls-cert FILE --tls-key FILE",
    "Pass api_key=, set KAGZI_API_KEY, or send `authorization: Bearer kgz_...`.": "Set KAGZI_API_KEY.",
}


def python_in_options(text: str) -> str:
    """A remedy for programs, as one for commands."""
    for words, option in _OF_PROGRAMS.items():
        text = text.replace(words, option)
    return text


def in_options(text: str, command: click.Command | None, field: str = "") -> str:
    """`max_running=0 is outside ...` becomes `--max-running 0 is outside ...`, if the command has that option.

    `field`: the refused field, which is replaced even if it is an ordinary word.
    """
    text = python_in_options(text)
    if command is None:
        return text
    names = {parameter.name: _name(parameter) for parameter in command.params}

    def replaced(word: re.Match[str]) -> str:
        name, has_value = word["name"] or "", bool(word["value"])
        option = names.get(_PARAMETERS.get(name, name.replace("limits.", "max_")))
        if option is None or not (has_value or "_" in name or name == field):
            return word[0]
        return f"{option} " if has_value else option

    return _WORD.sub(replaced, text)


def _name(parameter: click.Parameter) -> str:
    """`--max-running`; an argument as its help shows it."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return (parameter.metavar or parameter.name or "").strip("[].").upper()
