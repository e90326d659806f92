"""A tiny `bench.guarded`: with everything switched on it measures, and what is switched on is used."""

import re
import subprocess
import sys

from tests.support.collector import collecting
from tests.support.timeouts import LOADED_MACHINE_S

BY_PROCESS = r"server \d+\.\d worker \d+\.\d client \d+\.\d"
FIGURES = rf" +[\d,]+ steps/s +\d+\.\d us of CPU a step: {BY_PROCESS}(  slowed down \d+\.\d\d)?$"
RATIO = r"^   all +steps/s \d+\.\d%, 1 / CPU \d+\.\d% of plain$"


def test_plain_and_guarded_take_turns_and_every_step_is_traced() -> None:
    tiny = ("--rounds", "2", "--duration", "0.3", "--warm-up", "0.1", "--in-flight", "5")
    with collecting() as collector:
        done = subprocess.run(
            [sys.executable, "-m", "bench.guarded", *tiny, "--collector", collector.url],
            check=False,
            capture_output=True,
            text=True,
            timeout=2 * LOADED_MACHINE_S,
        )
        kinds = [span.name.split()[0] for span in collector.spans]
    assert done.returncode == 0, done.stderr
    measured = [re.sub(FIGURES, "", line) for line in done.stdout.splitlines()]
    assert measured[:7] == ["0  plain", "0  all", "1  plain", "1  all", "medians", "   plain", "   all"]
    assert re.search(RATIO, measured[7])
    assert len(measured) == 8  # two rounds are too few for figures of a calm machine
    assert kinds.count("step") > 10 * kinds.count("run") > 0  # the warm-up has one run of more steps
    assert any(name.startswith("kagzi.v1.") for name in kinds)  # of the server
