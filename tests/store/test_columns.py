"""Lists of a run's columns in SQL: their forms, and what the table must have."""

import pytest

from kagzi.core.records import RunAttributes
from kagzi.store.columns import RUN, Use, columns, expand_columns


def test_every_attribute_of_a_run_has_a_column_that_starts_write() -> None:
    assert set(RunAttributes.__struct_fields__) <= {column.name for column in columns(Use.NEW)}
    assert len({column.name for column in RUN}) == len(RUN)


def test_a_list_is_written_out_in_the_form_that_is_asked_for() -> None:
    names = [column.name for column in columns(Use.ATTRIBUTES)]
    assert expand_columns("({run.attributes})", uuid_type=True) == f"({', '.join(names)})"
    assert expand_columns("{run.attributes:g}", uuid_type=True) == ", ".join(f"g.{name}" for name in names)
    assert expand_columns("{run.attributes values}", uuid_type=True) == ", ".join(f":{name}" for name in names)
    assert "priority smallint" in expand_columns("{run.attributes typed}", uuid_type=True)
    assert ":priority::smallint AS priority" in expand_columns("{run.attributes single}", uuid_type=True)


def test_ids_are_read_as_text_where_they_have_a_type_of_their_own() -> None:
    assert "r.run_id::text AS run_id, r.namespace" in expand_columns("{run.shown:r read}", uuid_type=True)
    assert "r.run_id, r.namespace" in expand_columns("{run.shown:r read}", uuid_type=False)


def test_a_list_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="no columns are hidden"):
        expand_columns("{run.hidden:r}", uuid_type=True)
