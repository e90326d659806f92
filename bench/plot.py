"""Draws a document as SVG without a library: one panel for each workload, one bar for each engine, fastest first."""

from xml.sax.saxutils import escape

from bench.document import Document
from bench.report import number
from bench.summary import Figure, figures, is_kagzi

_COLUMNS = 2
_PANEL_WIDTH = 560
_LABEL_WIDTH = 215
_VALUE_WIDTH = 105
_BAR_HEIGHT = 16
_BAR_GAP = 5
_HEAD = 46
_MARGIN = 20
_OURS = "#c2410c"
_THEIRS = "#94a3b8"
_TEXT = "#1e293b"
_FONTS = "DejaVu Sans, Arial, sans-serif"


def draw(document: Document) -> str:
    """Bars show relative speed: the fastest engine fills the width, and one half as long is half as fast."""
    panels = [
        (workload, by_engine)
        for workload, by_engine in figures(document).items()
        if document["workloads"][workload]["has_ratio"] and any(not is_kagzi(engine) for engine in by_engine)
    ]
    height = _HEAD + max((len(by_engine) for _, by_engine in panels), default=0) * (_BAR_HEIGHT + _BAR_GAP) + _MARGIN
    rows = -(-len(panels) // _COLUMNS)
    size = (_COLUMNS * _PANEL_WIDTH + _MARGIN, rows * height + _MARGIN)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" font-family="{_FONTS}">',
        f'<rect width="{size[0]}" height="{size[1]}" fill="white"/>',
    ]
    for place, (workload, by_engine) in enumerate(panels):
        x = _MARGIN + place % _COLUMNS * _PANEL_WIDTH
        y = _MARGIN + place // _COLUMNS * height
        parts += _panel(document, workload, by_engine, x, y)
    return "\n".join([*parts, "</svg>", ""])


def _panel(document: Document, workload: str, by_engine: dict[str, Figure], x: int, y: int) -> list[str]:
    about = document["workloads"][workload]
    higher = about["higher_is_better"]
    order = sorted(by_engine, key=lambda engine: by_engine[engine].median, reverse=higher)
    best = by_engine[order[0]].median
    direction = "more is better" if higher else "less is better"
    parts = [
        _text(x, y + 12, f"{workload}: {about['what']}", size=13, weight="bold"),
        _text(x, y + 28, f"{about['unit']}, {direction}", size=11),
    ]
    width = _PANEL_WIDTH - _LABEL_WIDTH - _VALUE_WIDTH - _MARGIN
    for row, engine in enumerate(order):
        value = by_engine[engine].median
        share = (value / best if higher else best / value) if best and value else 1.0
        top = y + _HEAD - 8 + row * (_BAR_HEIGHT + _BAR_GAP)
        colour = _OURS if is_kagzi(engine) else _THEIRS
        left = x + _LABEL_WIDTH
        parts.append(_text(left - 6, top + 12, document["engines"][engine]["title"], size=11, anchor="end"))
        parts.append(
            f'<rect x="{left}" y="{top}" width="{max(width * share, 1):.1f}" height="{_BAR_HEIGHT}" fill="{colour}"/>'
        )
        parts.append(_text(round(left + width * share + 5), top + 12, number(value), size=11))
    return parts


def _text(x: int, y: int, text: str, *, size: int, weight: str = "normal", anchor: str = "start") -> str:
    style = f'font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" fill="{_TEXT}"'
    return f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>'
