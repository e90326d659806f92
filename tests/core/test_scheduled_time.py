"""The nominal time in the metadata of a context: what is put in comes out again, and nothing else changes."""

from hypothesis import given
from hypothesis import strategies as st

from kagzi.core.records import Payload
from kagzi.core.schedules.scheduled_time import METADATA_KEY, split_scheduled_time, with_scheduled_time

names = st.text(min_size=1, max_size=8).filter(lambda name: name != METADATA_KEY)
contexts = st.none() | st.builds(
    Payload, st.binary(min_size=1, max_size=8), st.none() | st.dictionaries(names, names, min_size=1)
)


@given(contexts, st.none() | st.integers(-(10**17), 10**17))
def test_it_comes_out_as_it_went_in(context: Payload | None, scheduled_at: int | None) -> None:
    assert split_scheduled_time(with_scheduled_time(context, scheduled_at)) == (context, scheduled_at)


@given(st.text(max_size=30).filter(lambda text: not text.lstrip("-").isascii() or not text.lstrip("-").isdigit()))
def test_what_is_not_a_time_is_none(text: str) -> None:
    """An import may bring anything."""
    assert split_scheduled_time(Payload(b"", {METADATA_KEY: text})) == (None, None)
