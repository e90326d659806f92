"""The write-ahead log is folded into the file beside the thread that writes, and stays short."""

from pathlib import Path

from tests.store.conformance.verbs import StoreHarness, payload

BATCHES, PER_BATCH = 40, 100
INPUT = payload('"' + "x" * 20_000 + '"')
WRITTEN = BATCHES * PER_BATCH * 20_000  # bytes, at least


def size_of(path: str) -> int:
    return Path(path).stat().st_size


async def test_the_log_stays_short_while_much_is_written(harness: StoreHarness, path: str) -> None:
    """Without folding all of this would still be in the log: SQLite itself begins at 32,000 pages."""
    longest = 0
    for _ in range(BATCHES):
        await harness.start_many(PER_BATCH, input=INPUT)
        longest = max(longest, size_of(f"{path}-wal"))
    assert WRITTEN < 32_000 * 4_096
    assert longest < WRITTEN * 0.7
    assert size_of(path) > WRITTEN * 0.3
