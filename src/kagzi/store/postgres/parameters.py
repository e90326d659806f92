"""Named parameters of statements: numbered when a statement is loaded, put in order when it is called.

`:name` is one value. `rows(:name) AS alias (column type, ...)` is a table: a sequence of mappings by column, sent as
one array per column and turned into rows by `unnest`, which is the fastest way. WITH ORDINALITY may precede AS; its
column has no type.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import cast

Table = Sequence[Mapping[str, object]]

_PARAMETER = re.compile(
    r"--[^\n]*|'[^']*'"  # comments and strings are left alone
    r"|\brows\(:(?P<table>[a-z_]+)\)(?P<ordinality> WITH ORDINALITY)? AS (?P<alias>[a-z]+) \((?P<columns>[^)]*)\)"
    r"|(?<!:):(?P<value>[a-z_]+)"
)


class Parameters:
    """The parameters of a statement, in the order of the numbers in its text."""

    def __init__(self) -> None:
        self._tables: dict[str, _Columns | None] = {}  # in order; None: a single value
        self._numbers: dict[str, int] = {}
        self._count = 0

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """All parameters by name; tables with their columns."""
        return {name: () if columns is None else columns.names for name, columns in self._tables.items()}

    def in_order(self, values: Mapping[str, object]) -> list[object]:
        """Raises TypeError unless `values` has exactly the parameters of the statement."""
        tables = self._tables
        arguments: list[object] = []
        try:
            for name, columns in tables.items():
                if columns is None:
                    arguments.append(values[name])
                else:
                    arguments += columns.arrays(cast("Table", values[name]))
        except KeyError as missing:
            raise TypeError(f"{missing} is missing, expected {sorted(tables)}") from None
        if len(values) != len(tables):
            raise TypeError(f"got {sorted(values)}, expected {sorted(tables)}")
        return arguments

    def number(self, match: re.Match[str]) -> str:
        """The text that replaces a parameter in the statement."""
        if (name := match["value"]) is not None:
            return f"${self._place(name, None)}"
        if (name := match["table"]) is None:
            return match[0]
        pairs = [column.strip().partition(" ") for column in match["columns"].split(",")]
        typed = {column: kind for column, _, kind in pairs if kind}
        first = self._place(name, _Columns(tuple(typed)))
        arrays = ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(typed.values(), start=first))
        names = ", ".join(column for column, _, _ in pairs)
        return f"unnest({arrays}){match['ordinality'] or ''} AS {match['alias']} ({names})"

    def _place(self, name: str, columns: "_Columns | None") -> int:
        if name not in self._tables:
            self._tables[name] = columns
            self._numbers[name] = self._count + 1
            self._count += 1 if columns is None else len(columns.names)
        elif columns is not None or self._tables[name] is not None:
            raise ValueError(f"the table {name} is read twice")
        return self._numbers[name]


class _Columns:
    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self._values: Callable[[Mapping[str, object]], tuple[object, ...]] = (
            itemgetter(*names) if len(names) > 1 else self._value
        )

    def _value(self, row: Mapping[str, object]) -> tuple[object, ...]:
        """For a single column, where itemgetter returns no tuple."""
        return tuple(row[name] for name in self.names)

    def arrays(self, rows: Table) -> Sequence[object]:
        """`unnest` pads short arrays with NULL, so a column of only None is sent as an empty array: the driver inspects
        every element."""
        if not rows:
            return ((),) * len(self.names)
        if len(rows[0]) != len(self.names):
            raise TypeError(f"rows of {sorted(rows[0])}, expected {sorted(self.names)}")
        count = len(rows)
        arrays = zip(*map(self._values, rows), strict=True)
        return [() if array[0] is None and array.count(None) == count else FlatArray(array) for array in arrays]


class FlatArray(tuple[object, ...]):
    """A column of values. The driver iterates twice: first to ask every element whether it is itself an array, then to
    encode them. None of ours is an array, and asking costs more than encoding, so the first iteration is empty.
    """

    _shape_known = False

    def __iter__(self) -> Iterator[object]:
        if self._shape_known:
            return super().__iter__()
        self._shape_known = True
        return iter(())


def number_parameters(text: str) -> tuple[str, Parameters]:
    """The text with parameters numbered in the order of their first occurrence."""
    parameters = Parameters()
    return _PARAMETER.sub(parameters.number, text), parameters
