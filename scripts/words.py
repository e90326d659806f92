"""Finds words that the project does not use: `python scripts/words.py`. Exit status 1 if there is one.

A reader who knows the field should not meet a word that needs translation. docs/glossary.md has our words, EVERYWHERE
and IN_NAMES the ones that they replace, EXCEPTIONS the names that others have chosen.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
THIS = "scripts/words.py"

# Not allowed in names, comments, documentation, messages and SQL; with the words to use instead.
EVERYWHERE = {
    "letter letters parcel parcels": "message, request, response",
    "wave waves lane lanes": "batch, fast path; write queue",
    "desk desks fullness oust ousts ousted ousting": "the class itself; admission; evict",
    "kin kinship stirred poke pokes poked horizon": "parent and children; woken; wake; next_due",
    "taker takers strays": "slots; unmatched",
    "occasion occasions rhythm": "scheduled start; interval",
    "closings revivals unwinding": "endings; retry and fork; teardown",
    "hinder hinders hindered hindering unhindered": "can_proceed",
    "cellar cellars dice seam seams mailbox duplex": "store harness; rng; providers; outbound queue; run both",
}
# Not allowed in names of modules, classes, functions, arguments, variables, tables and columns; allowed in sentences.
IN_NAMES = {
    "post house floor floors study door doors room rooms": "the class itself, what it holds",
    "families born": "parent and children; created",
    "news tell tells telling told hear hears heard": "notifications; notify",
    "look looks looked cut cuts lose loses": "poll; shorten_leases; lost_before_ack",
    "grant grants holders presence beats held": "reservation; lease registry; liveness; heartbeats; leased",
    "book go ends marks rewind successors": "firing plan; endings; markers; continue-as-new",
    "blame blames isolate fold folds folding": "bisect; WAL checkpoint",
    "quiet loose arrivals troubles volatile joins interpreter": "idle; runnable; incoming; diagnostics; throttled",
    "patience expect gate gates hall site parties stage": "deadline; require; interceptor; engine harness; fakes",
    "said given asked found": "nouns for values: options, request, rows",
}
BANNED = {word: instead for words, instead in EVERYWHERE.items() for word in words.split()}
NO_NAMES = {word: instead for words, instead in IN_NAMES.items() for word in words.split()}
SENTENCES = {
    "Answers ...": re.compile(r"^Answers\b"),
    "is no ...": re.compile(r"(?i)(?<!there )\b(?:is|are|was) no (?!longer|more|such|one|other|way|need)[a-z`]"),
}
INSTEAD = {"Answers ...": "Returns ...", "is no ...": "is not a ..."}

# Names that we cannot choose.
EXCEPTIONS = (
    re.compile(r"not_?found", re.IGNORECASE),  # gRPC's NOT_FOUND, and the field and the error with that name
    re.compile(r"^post_to_slack$"),  # in an example of the API's design
    re.compile(r"^__\w+__$"),  # Python's
    re.compile(r"^runs_to_go_on$"),  # an index that a migration made
)

PYTHON = ("src/kagzi", "tests", "bench", "scripts", "examples")
TEXTS = ("docs", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "src/kagzi", "proto")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class Hit(NamedTuple):
    word: str
    place: str


def main() -> int:
    hits = [hit for path in files() for hit in hits_in(path)]
    instead = BANNED | NO_NAMES | INSTEAD
    problems = [f"{hit.place}: {hit.word!r} is a word that we do not use. Write: {instead[hit.word]}." for hit in hits]
    problems += banned_in_glossary()
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


def banned_in_glossary() -> Iterator[str]:
    """The glossary must not explain a word that is not allowed."""
    terms = re.findall(r"^\| ([^|]+) \|", GLOSSARY.read_text(), re.MULTILINE) if GLOSSARY.exists() else []
    for term in terms:
        for word in BANNED.keys() & set(re.findall(r"[a-z]+", term.lower())):
            yield f"docs/glossary.md: {word!r} is a word that we do not use"


# --- reading ----------------------------------------------------------------------------------------------------------


def files() -> Iterator[Path]:
    for top in PYTHON:
        yield from sorted((ROOT / top).rglob("*.py"))
    for top in TEXTS:
        path = ROOT / top
        found = [path] if path.is_file() else [*path.rglob("*.md"), *path.rglob("*.sql"), *path.rglob("*.proto")]
        yield from sorted(found)


def hits_in(path: Path) -> Iterator[Hit]:
    relative = path.relative_to(ROOT)
    generated = "v1" in relative.parts[:3] and path.suffix == ".py"
    if generated or str(relative) == THIS or "migrations" in relative.parts:
        return
    text = path.read_text(encoding="utf-8")
    names, sentences = (python_words if path.suffix == ".py" else plain_words)(path, text)
    for line, name in [(1, path.stem.removeprefix("test_")), *names]:
        for word in sorted(banned_in(name)):
            yield Hit(word, f"{relative}:{line}: {name}")
    for line, sentence in sentences:
        place = f"{relative}:{line}: {sentence.strip()[:120]}"
        for word in re.findall(r"[a-z]+", sentence.lower()):
            if word in BANNED:
                yield Hit(word, place)
        for rule, pattern in SENTENCES.items():
            yield from (Hit(rule, place) for _ in pattern.findall(sentence.strip()))


def banned_in(name: str) -> set[str]:
    """The words of a name that are not allowed. The name of a test is a sentence."""
    banned = BANNED.keys() if name.startswith("test_") else (BANNED | NO_NAMES).keys()
    for exception in EXCEPTIONS:
        name = exception.sub("", name)
    return {part.lower() for part in _PARTS.findall(name)} & banned


Lines = list[tuple[int, str]]


def python_words(path: Path, text: str) -> tuple[Lines, Lines]:
    """The names that are defined here; and the comments, docstrings and messages."""
    names: Lines = []
    sentences: Lines = []
    for node in ast.walk(ast.parse(text, str(path))):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.append((node.lineno, name))
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                names.append((node.lineno, name))
            case ast.Constant(value=str(value)) if " " in value:
                sentences += [(node.lineno, line) for line in value.splitlines()]
            case _:
                pass
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            sentences.append((token.start[0], token.string.lstrip("#: ")))
    return names, sentences


def plain_words(path: Path, text: str) -> tuple[Lines, Lines]:
    """SQL and protos consist of names, except for their comments; a page is text."""
    names: Lines = []
    sentences: Lines = []
    comment = {".sql": "--", ".proto": "//"}.get(path.suffix)
    for number, line in enumerate(text.splitlines(), 1):
        code, _, text_behind = (line, "", "") if comment is None else line.partition(comment)
        if comment is None:
            sentences.append((number, line))
            continue
        sentences.append((number, text_behind.strip()))
        names += [(number, name) for name in dict.fromkeys(re.findall(r"[A-Za-z_]\w+", code))]
    return names, sentences


if __name__ == "__main__":
    sys.exit(main())
