"""Explains what became of the signals that a run has ended without having received."""

import msgspec

from ....core.records import Explanation, RunRecord
from ....core.text.plurals import counted
from ....store.protocol import Store

_NAMED = 5


async def with_unread(store: Store, run: RunRecord, explained: Explanation) -> Explanation:
    """Adds a sentence if it ended with unread signals, and one if it has handed some on."""
    sentence, facts, remedy = explained.sentence, dict(explained.facts), explained.remedy
    if run.unread_signals:
        names = await store.unread_signals(run.run, _NAMED + 1)
        named = ", ".join(f"{name} x{count}" for name, count in list(names.items())[:_NAMED])
        more = ", ..." if len(names) > _NAMED else ""
        sentence += f" It ended with {counted(run.unread_signals, 'unread signal')}: {named}{more}."
        facts["unread_signals"] = str(run.unread_signals)
        remedy = remedy or "Nothing receives them. If senders call signal_with_start, the next run gets such signals."
    if run.handed_on_to is not None:
        sentence += f" Signals that came by signal_with_start went on to run {run.handed_on_to}."
        facts["handed_on_to"] = run.handed_on_to
    return msgspec.structs.replace(explained, sentence=sentence, facts=facts, remedy=remedy)
