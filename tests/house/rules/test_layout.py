"""Where files lie: folders that a person can read at a glance, and two stores in which a subject has one name."""

from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3] / "src" / "kagzi"
MOST_MODULES = 20

# Folders that are still too large, and how many modules they have at most. The numbers may only fall.
LARGE = {"core": 43, "store/postgres": 49, "store/sqlite": 49}

# Files that only one of the stores has. The list may only shrink; what stays says why.
POSTGRES_ONLY = {
    "barrier",  # commits of other servers that are still under way
    "batch", "blame", "bus", "connections", "controls", "families", "kinship", "links", "pages", "partition", "refusals",
    "revivals", "schedule_fires", "settle", "state_rows",
}  # fmt: skip
SQLITE_ONLY = {
    "attempts", "children", "closing", "connection", "control", "ends", "fences", "file_watch", "folding", "lanes", "marks",
    "plain_text", "rewind", "sleeps", "successors", "types",
}  # fmt: skip


def modules(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.py")} - {"__init__"}


def test_no_folder_has_more_modules_than_a_person_can_read() -> None:
    folders = {str(path.parent.relative_to(SOURCE)): path.parent for path in SOURCE.rglob("*.py")}
    counts = {name: len(modules(folder)) for name, folder in folders.items() if name != "v1"}
    large = {name: count for name, count in counts.items() if count > LARGE.get(name, MOST_MODULES)}
    assert not large, f"more than {MOST_MODULES} modules: {large}"


def test_both_stores_call_a_subject_by_one_name() -> None:
    postgres, sqlite = modules(SOURCE / "store" / "postgres"), modules(SOURCE / "store" / "sqlite")
    assert sorted(postgres - sqlite - POSTGRES_ONLY) == []
    assert sorted(sqlite - postgres - SQLITE_ONLY) == []
