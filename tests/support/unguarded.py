"""`kagzi` with the replication barrier taken out. A test that cannot tell it from the real one proves nothing.

python -m tests.support.unguarded server --db ...
"""

from kagzi.cli.main import main
from kagzi.store.postgres.connection.barrier import Barrier


def take_the_barrier_out() -> None:
    Barrier.needed = property(lambda _: False)  # type: ignore[method-assign, assignment]  # this is the point


if __name__ == "__main__":
    take_the_barrier_out()
    main()
