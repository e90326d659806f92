"""Writes docs/llms.txt: each page of the documentation with its first sentence, for programs that read (llmstxt.org).
With `--check`, fails if it differs from what is committed."""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TARGET = DOCS / "llms.txt"
SECTIONS = {
    "Start": ("tutorial.md", "why.md", "glossary.md", "performance.md"),
    "How to": ("how-to/*.md",),
    "Reference": ("reference/*.md", "reference/python/*.md"),
}
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SENTENCE = re.compile(r"(.+?[.:])(?:\s|$)", re.DOTALL)


def text() -> str:
    readme = (ROOT / "README.md").read_text()
    lines = ["# Kagzi", "", f"> {_first_sentence(readme)}", ""]
    for section, patterns in SECTIONS.items():
        lines += [f"## {section}", "", *_entries(patterns), ""]
    return "\n".join(lines)


def _entries(patterns: tuple[str, ...]) -> Iterator[str]:
    for pattern in patterns:
        for path in sorted(DOCS.glob(pattern)):
            page = path.read_text()
            title = next(line[2:] for line in page.splitlines() if line.startswith("# "))
            yield f"- [{title}]({path.relative_to(DOCS)}): {_first_sentence(page)}"


def _first_sentence(page: str) -> str:
    """Of the first paragraph of prose."""
    for block in page.split("\n\n"):
        if block and block[0] not in "#<|!-`":
            words = " ".join(_LINK.sub(r"\1", block).split())
            sentence = _SENTENCE.match(words)
            return (sentence[1] if sentence else words).replace("**", "")
    raise SystemExit("a page has no prose")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        TARGET.write_text(text())
    elif not TARGET.exists() or TARGET.read_text() != text():
        sys.exit(f"{TARGET} is not what the pages say; run `make gen`")


if __name__ == "__main__":
    main()
