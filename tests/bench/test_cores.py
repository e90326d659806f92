"""What all cores do together is measured with as many processes as there are cores."""

import os

from bench.cores import cores_together


def test_all_cores_do_as_much_as_one_or_more() -> None:
    cores = len(os.sched_getaffinity(0))
    # Beside other tests, a process that is alone gets a smaller share of the machine than as many as there are cores.
    assert 0.1 < cores_together(seconds=0.1, tries=1) < 10 * cores
