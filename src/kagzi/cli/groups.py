"""Command groups: suggestions for mistyped verbs, refusals that name options, and a default verb."""

from __future__ import annotations

import difflib
import re
from typing import Any

import click

from .exits import Exit, stop_of

_EXTRA = re.compile(r"Got unexpected extra arguments? \(([\w-]+)")  # click's message


class Commands(click.Group):
    """A group whose commands raise only errors that `main` reports."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(Exit.USAGE)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(name, self.list_commands(ctx), n=2)
            guess = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise click.UsageError(f"No such command {name!r}.{guess}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            stop = stop_of(error, self.get_command(ctx, ctx.invoked_subcommand or ""))
            if stop is None:
                raise
            raise stop from error


class Listing(Commands):
    """A group that runs `list`, with its options, if there is no verb; `show` is an alias of `get`."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, "get" if cmd_name == "show" else cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in self.get_help_option_names(ctx)):
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            extra = _EXTRA.match(error.message)
            if extra is None or self.get_command(ctx, extra[1]) is None:
                raise
            raise click.UsageError(
                f"{extra[1]!r} comes before the options. Write {ctx.command_path} {extra[1]} ..., then the options.",
                ctx,
            ) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # The project file applies to every verb.
        ctx.default_map = dict.fromkeys(self.commands, ctx.default_map or {})
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(f"Without a command, the same as {ctx.command_path} list, with its options.")
