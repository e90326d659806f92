"""Where files lie: folders that a person can read at a glance, and two stores in which a subject has one name."""

from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3] / "src" / "kagzi"
MOST_MODULES = 20

# Files that only one of the stores has, and why.
POSTGRES_ONLY = {
    "connection/hosts",  # a file has no other hosts to try
    "connection/target",  # as hosts: where the database is
    "parameters",  # SQLite numbers named parameters itself
    "outbox/outbox",  # SQLite neither tells of new rows nor lets two servers divide them
    "partition",  # only PostgreSQL divides its tables
    "connection/barrier",  # only PostgreSQL has standbys
    "connection/bus",  # only PostgreSQL has several servers on one database
    "write/careful_path",  # SQLite decides one command after the other in the thread of the writer (write/write)
    "write/batch",  # which statement failed is only a question where many commands share one
}
SQLITE_ONLY = {
    "connection/checkpoints",  # PostgreSQL runs its checkpoints itself
    "connection/file_status",  # as file_watch, which needs it
    "connection/file_watch",  # only a file can be deleted while it is in use
    "connection/inline",  # a database at the other end of a socket is waited for without a thread
    "write/run_changes",  # saves row by row; PostgreSQL saves in one statement (write/run_state)
    "write/fences",  # the only writer remembers leases; PostgreSQL fences in the statement
    "write/continue_as_new",  # one statement in PostgreSQL (write/children)
    "connection/session",  # a session of PostgreSQL is its connection (connection/connection)
    "operate/namespace_rows",  # the only writer remembers namespaces; PostgreSQL reads their rows
    "operate/type_limits",  # the only writer remembers limits; PostgreSQL locks their rows
}


def modules(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.py")} - {"__init__"}


def files(store: str) -> set[str]:
    folder = SOURCE / "store" / store
    return {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.py") if path.stem != "__init__"}


def test_no_folder_has_more_modules_than_a_person_can_read() -> None:
    folders = {str(path.parent.relative_to(SOURCE)): path.parent for path in SOURCE.rglob("*.py")}
    counts = {name: len(modules(folder)) for name, folder in folders.items() if name != "v1"}
    large = {name: count for name, count in counts.items() if count > MOST_MODULES}
    assert not large, f"more than {MOST_MODULES} modules: {large}"


def test_both_stores_call_a_subject_by_one_name() -> None:
    assert files("postgres") - files("sqlite") == POSTGRES_ONLY
    assert files("sqlite") - files("postgres") == SQLITE_ONLY
