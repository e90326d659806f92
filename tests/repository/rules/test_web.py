"""Rules of web/ that no linter knows: which folder may import which, who talks to the server, how long a file is."""

import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3] / "web" / "src"
GENERATED = {"api/types.ts"}
MOST_LINES = 300

# What a folder may import besides itself. A page is one, too: it imports no other page.
MAY_IMPORT = {
    "model": set[str](),
    "ui": {"model"},
    "api": {"model"},
    "state": {"api", "model"},
    "shell": {"api", "model", "state", "ui"},
    "pages": {"api", "model", "state", "ui"},
}
IMPORTED = re.compile(r"""\bfrom\s+["']([^"']+)["']|\bimport\s*\(?\s*["']([^"']+)["']""")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
FORBIDDEN = {
    r"\b(?:fetch|XMLHttpRequest|sendBeacon)\s*\(|new\s+(?:EventSource|WebSocket)\b": "only api talks to the server",
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write)\b": "text is never markup",
    r"""<[a-z][\w-]*\s[^<>]*\bstyle=["']""": "the policy of the page forbids style attributes; use style={{...}}",
    r":\s*any\b|\bas\s+any\b|<any>": "use unknown and narrow it",
    r"@ts-(?:ignore|nocheck)": "mend the type",
}


def files() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.ts*")):
        name = path.relative_to(SOURCE).as_posix()
        if name not in GENERATED:
            yield name, path.read_text()


def part(name: str) -> str:
    """The folder a file belongs to; of pages the page."""
    folders = name.split("/")[:-1]
    return "/".join(folders[:2] if folders[:1] == ["pages"] else folders[:1])


def code_of(text: str) -> str:
    """Without comments, line by line."""
    return COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def test_imports_go_down_only() -> None:
    wrong: list[str] = []
    for name, text in files():
        own = part(name)
        if not own:
            continue  # main.tsx and pages.ts know all
        allowed = {own} | MAY_IMPORT[own.split("/")[0]]
        for match in IMPORTED.finditer(code_of(text)):
            target = match[1] or match[2]
            if target.startswith("."):
                resolved = (SOURCE / name).parent.joinpath(target).resolve()
                imported = part(resolved.relative_to(SOURCE).as_posix())
                wrong += [f"{name} imports {target}"] if imported not in allowed else []
            elif target.split("/")[0] not in ("preact", "@preact"):
                wrong.append(f"{name} imports the package {target}")
    assert not wrong, "\n".join(wrong)


def test_only_api_talks_to_the_server_and_nothing_makes_markup() -> None:
    wrong: list[str] = []
    for name, text in files():
        for pattern, reason in FORBIDDEN.items():
            if part(name) != "api" or not reason.startswith("only api"):
                matches = re.finditer(pattern, code_of(text))
                wrong += [f"{name}:{text.count(chr(10), 0, each.start()) + 1} {each[0]}: {reason}" for each in matches]
    assert not wrong, "\n".join(wrong)


def test_files_are_short() -> None:
    long = [f"{name}: {text.count(chr(10))} lines" for name, text in files() if text.count("\n") > MOST_LINES]
    assert not long, "\n".join(long)
