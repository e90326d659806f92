"""The code blocks of a Markdown page. ```python NAME is a file of that name; the ```text after it is what it prints."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    name: str
    text: str


def blocks(page: str) -> list[Block]:
    matches = _BLOCK.finditer((ROOT / page).read_text())
    return [Block(match["language"], match["name"] or "", match["text"]) for match in matches]


def write_files(page: str, directory: Path) -> None:
    for block in blocks(page):
        if block.language == "python" and block.name:
            (directory / block.name).write_text(block.text)


def printed_by(page: str, name: str) -> str:
    """What the page says that the file prints: the text block that follows it."""
    all_blocks = blocks(page)
    position = next(number for number, block in enumerate(all_blocks) if block.name == name)
    answer = all_blocks[position + 1]
    assert answer.language == "text", f"{page}: no output is shown after {name}"
    return answer.text
