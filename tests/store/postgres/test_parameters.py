"""Parameters go by name: every call gives exactly those of its statement, and each of them is used."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from kagzi.store import postgres
from kagzi.store.postgres.parameters import FlatArray, number_parameters
from kagzi.store.postgres.statements import PARAMETERS, STATEMENTS

FOLDER = Path(postgres.__file__).parent
SHARED = FOLDER.parent / "operate"

# Helpers that add what they know themselves.
ADDED = {"page": {"page_bytes", "limit"}, "_read": {"namespace", "workflow_type", "versions", "build_id", "now"}}
ADDED["list_page"] = ADDED["page"]
ADDED["_export"] = ADDED["page"] | {"run_id"}


def calls() -> Iterator[tuple[str, str, str, ast.Call]]:
    """Every call that names a statement: where, by what function, which statement."""
    for module in sorted((*FOLDER.rglob("*.py"), *SHARED.glob("*.py"))):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
                function = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                names = [str(argument.value) for argument in node.args[:2] if isinstance(argument, ast.Constant)]
                for statement in [each for name in names for each in (name, f"{name}_next", f"{name}_prev")]:
                    if statement in PARAMETERS:
                        yield f"{module.name}:{node.lineno}", function, statement, node


def test_every_call_gives_the_parameters_of_its_statement() -> None:
    wrong: list[str] = []
    seen = 0
    for place, function, statement, call in calls():
        expected = set(PARAMETERS[statement].columns) - ADDED.get(function, set())
        passed = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
        whole = all(
            keyword.arg is not None for keyword in call.keywords
        )  # the rest of `**given` is checked when it runs
        seen += whole
        if passed != expected if whole else passed - expected:
            wrong.append(f"{place}: {statement} is given {sorted(passed)}, expected {sorted(expected)}")
    assert wrong == []
    assert seen > 150


def test_every_parameter_is_in_the_text_by_its_number() -> None:
    for name, parameters in PARAMETERS.items():
        width = sum(len(columns) or 1 for columns in parameters.columns.values())
        used = {int(number) for number in re.findall(r"\$(\d+)", STATEMENTS[name])}
        assert used == set(range(1, width + 1)), name


def test_no_file_counts_parameters() -> None:
    counted = [file.name for file in FOLDER.joinpath("sql").iterdir() if re.search(r"\$\d", file.read_text("utf-8"))]
    assert counted == []


def test_values_are_numbered_in_the_order_in_which_they_come() -> None:
    text, parameters = number_parameters("-- :not this\nSELECT :b::text, ':nor', :a, :b")
    assert text == "-- :not this\nSELECT $1::text, ':nor', $2, $1"
    assert parameters.in_order({"a": 1, "b": 2}) == [2, 1]


def test_a_table_is_sent_as_one_array_per_column() -> None:
    text, parameters = number_parameters("SELECT :now, g.* FROM rows(:g) WITH ORDINALITY AS g (a int, b text, n)")
    assert text == "SELECT $1, g.* FROM unnest($2::int[], $3::text[]) WITH ORDINALITY AS g (a, b, n)"
    rows = [{"b": "x", "a": 1}, {"a": 2, "b": None}]
    assert parameters.in_order({"g": rows, "now": 5}) == [5, (1, 2), ("x", None)]
    assert parameters.in_order({"g": [{"a": 1, "b": None}], "now": 5}) == [5, (1,), ()], "nothing but NULL"
    assert parameters.in_order({"g": [], "now": 5}) == [5, (), ()]


async def test_the_driver_writes_every_element_and_asks_none_what_it_is(connection: asyncpg.Connection) -> None:
    """An element that could be an array itself is refused as one of the type: nobody looked at it before."""
    sent = "SELECT * FROM unnest($1::int[], $2::text[], $3::bytea[]) AS g (a, b, c)"
    arrays = ((1, None, 3), ("x", "", None), (b"\x00", None, b""))
    statement = await connection.prepare(sent)
    assert [tuple(row) for row in await statement.fetch(*map(FlatArray, arrays))] == list(zip(*arrays, strict=True))
    again = [FlatArray(array) for array in arrays]
    for _ in range(2):  # as the driver does if a plan has become invalid
        assert len(await connection.fetch(sent, *again)) == 3
    for nested in ((1, [2]), FlatArray((1, [2]))):
        with pytest.raises(asyncpg.DataError) as refused:
            await statement.fetch(nested, (), ())
        assert ("non-homogeneous" in str(refused.value)) == (not isinstance(nested, FlatArray))


@pytest.mark.parametrize(
    "values",
    [
        {"now": 1},
        {"now": 1, "g": [], "more": 1},
        {"now": 1, "g": [{"a": 1}]},
        {"now": 1, "g": [{"a": 1, "b": 2, "c": 3}]},
    ],
)
def test_what_does_not_fit_is_refused(values: dict[str, object]) -> None:
    _, parameters = number_parameters("SELECT :now, g.* FROM rows(:g) AS g (a int, b text)")
    with pytest.raises(TypeError, match="expected"):
        parameters.in_order(values)
