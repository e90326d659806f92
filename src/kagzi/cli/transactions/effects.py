"""`kagzi effects`."""

import click

from ..console import put
from ..groups import Commands
from ..output import Output, json_output


@click.group(cls=Commands)
def effects() -> None:
    """Show how to create the table that kagzi.effect uses in your database."""


@effects.command()
@click.option(
    "--dialect",
    type=click.Choice(["postgresql", "sqlite"]),
    default="postgresql",
    show_default=True,
    help="The database it is for.",
)
@json_output
def sql(dialect: str) -> Output:
    """Print the statements that create the table kagzi_effects, for your migrations. You can safely repeat them."""
    from ...sdk.transactions.tables import EFFECTS, ddl

    text = ddl(EFFECTS, dialect)
    return Output({"sql": text}, lambda: put(text))
