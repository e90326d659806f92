"""Writes samples in the text format of Prometheus.

Written by hand for speed: a page may have thousands of lines and is built on the event loop. See docs/adr/0047.
"""

from collections.abc import Mapping, Sequence

from ...engine.measurements.values import Sample, Samples
from .catalogue import METRICS, Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(sources: Mapping[str, Samples]) -> bytes:
    """`sources`: samples by process, which becomes the label `process`; an empty name adds no label."""
    lines: list[str] = []
    for metric in METRICS:
        lines.append(f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n")
        for process, samples in sources.items():
            _write(metric, samples.get(metric.name, ()), f'process="{process}"' if process else "", lines)
    return "".join(lines).encode()


def _write(metric: Metric, samples: Sequence[Sample], process: str, lines: list[str]) -> None:
    suffixes = [f'le="{bound:g}"}} ' for bound in metric.bounds] + ['le="+Inf"} ']
    own = (process,) if process else ()
    for values, value in samples:
        labels = ",".join((*map(_label, metric.labels, values), *own))
        if isinstance(value, (int, float)):
            lines.append(f"{metric.name}{{{labels}}} {value}\n" if labels else f"{metric.name} {value}\n")
            continue
        counts, total = value
        if len(counts) != len(suffixes):  # from a process that runs another version
            continue
        begin = f"{metric.name}_bucket{{{labels}," if labels else f"{metric.name}_bucket{{"
        count = 0
        for suffix, more in zip(suffixes, counts, strict=True):
            count += more
            lines.append(f"{begin}{suffix}{count}\n")
        braced = f"{{{labels}}}" if labels else ""
        lines.append(f"{metric.name}_sum{braced} {total}\n{metric.name}_count{braced} {count}\n")


def _label(name: str, value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        value = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{name}="{value}"'
