"""Finds words that the project does not use: `python scripts/words.py`. Exit status 1 if a folder has more of one than before.

A reader who knows the field should meet no word that has to be translated: docs/glossary.md has ours, EVERYWHERE and
IN_NAMES the ones they replace. scripts/words.json counts those that are left, by folder. The numbers may only fall;
`--update` writes lower ones, `--show WORD` prints where a word is.
"""

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LEFT = ROOT / "scripts" / "words.json"
GLOSSARY = ROOT / "docs" / "glossary.md"
THIS = ("scripts/words.py", "scripts/words.json")

# In names, comments, documentation, messages and SQL; and what to write instead.
EVERYWHERE = {
    "letter letters parcel parcels": "message, request, response",
    "wave waves lane lanes": "batch, fast path; write queue",
    "desk desks fullness oust ousts ousted ousting": "the class itself; admission; evict",
    "kin kinship stirred poke pokes poked horizon": "parent and children; woken; wake; next_due",
    "taker takers strays": "slots; unmatched",
    "occasion occasions rhythm": "scheduled start; interval",
    "closings revivals unwinding hinder hinders unhindered": "endings; retry and fork; teardown; can_proceed",
    "cellar dice seams mailbox duplex": "store harness; rng; providers; outbound queue; run both",
}
# In names: of modules, classes, functions, arguments, variables, tables and columns. They are good words of a sentence.
IN_NAMES = {
    "post house floor floors study door doors room rooms": "the class itself, what it holds",
    "families born news tell tells told hear hears heard": "parent and children; created; notifications; notify",
    "look looks looked cut lose loses": "poll; shorten_leases; lost_before_ack",
    "grant grants holders presence beats held": "reservation; lease registry; liveness; heartbeats; leased",
    "book go ends marks rewind successors": "firing plan; endings; markers; continue-as-new",
    "blame isolate fold folds folding": "bisect; WAL checkpoint",
    "quiet loose arrivals troubles volatile joins interpreter": "idle; runnable; incoming; diagnostics; throttled",
    "patience expect gate hall site parties stage": "deadline; require; interceptor; engine harness; fakes",
    "said given asked found": "nouns for values: options, request, rows",
}
BANNED = {word: instead for words, instead in EVERYWHERE.items() for word in words.split()}
NO_NAMES = {word: instead for words, instead in IN_NAMES.items() for word in words.split()}
SENTENCES = {
    "Answers ...": re.compile(r"^Answers\b"),
    "is no ...": re.compile(r"(?i)(?<!there )\b(?:is|are|was) no (?!longer|more|such|one|other|way|need)[a-z`]"),
}
INSTEAD = {"Answers ...": "Returns ...", "is no ...": "is not a ..."}

# Names that are not ours to choose.
EXCEPTIONS = (
    re.compile(r"not_?found", re.IGNORECASE),  # gRPC's NOT_FOUND, and the field and the error of that name
    re.compile(r"^post_to_slack$"),  # of an example that is kept as the design of the API has it
    re.compile(r"^__\w+__$"),  # Python's
)

PYTHON = ("src/kagzi", "tests", "bench", "scripts", "examples")
TEXTS = ("docs", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "src/kagzi", "proto")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class Hit(NamedTuple):
    folder: str
    word: str
    place: str


def main() -> int:
    parser = argparse.ArgumentParser(description="Find words that the project does not use.")
    parser.add_argument("--update", action="store_true", help="write the numbers of today, where they are lower")
    parser.add_argument("--show", metavar="WORD", help="print where a word is")
    arguments = parser.parse_args()
    hits = [hit for path in files() for hit in hits_in(path)]
    if arguments.show:
        print("\n".join(hit.place for hit in hits if hit.word == arguments.show))
        return 0
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for hit in hits:
        counts[hit.folder][hit.word] += 1
    left: dict[str, dict[str, int]] = json.loads(LEFT.read_text()) if LEFT.exists() else {}
    if arguments.update:
        LEFT.write_text(json.dumps(lowered(counts, left), indent=1, sort_keys=True) + "\n")
        return 0
    problems = [*more_than(left, counts), *banned_in_glossary()]
    before = sum(sum(words.values()) for words in left.values())
    print(f"{len(hits)} words to replace; scripts/words.json allows for {before}")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


def lowered(counts: dict[str, Counter[str]], left: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Never higher than before; a first time takes what is there."""
    numbers: dict[str, dict[str, int]] = {}
    for folder, words in counts.items():
        allowed = left.get(folder, words)
        numbers[folder] = {word: min(count, allowed[word]) for word, count in words.items() if word in allowed}
    return numbers


def more_than(left: dict[str, dict[str, int]], counts: dict[str, Counter[str]]) -> Iterator[str]:
    for folder, words in sorted(counts.items()):
        for word, count in sorted(words.items()):
            before = left.get(folder, {}).get(word, 0)
            if count > before:
                instead = (BANNED | NO_NAMES | INSTEAD)[word]
                yield f"{folder}: {word!r} {count} times, {before} before. Write: {instead}. Where: scripts/words.py --show {word!r}"


def banned_in_glossary() -> Iterator[str]:
    """The glossary explains no word that is not to be used."""
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
    if generated or str(relative) in THIS or "migrations" in relative.parts:
        return
    folder = "/".join(relative.parts[: 4 if relative.parts[0] == "src" else 2][:-1]) or "."
    text = path.read_text(encoding="utf-8")
    names, sentences = (python_words if path.suffix == ".py" else plain_words)(path, text)
    for line, name in [(1, path.stem.removeprefix("test_")), *names]:
        for word in sorted(banned_in(name)):
            yield Hit(folder, word, f"{relative}:{line}: {name}")
    for line, sentence in sentences:
        place = f"{relative}:{line}: {sentence.strip()[:120]}"
        for word in re.findall(r"[a-z]+", sentence.lower()):
            if word in BANNED:
                yield Hit(folder, word, place)
        for rule, pattern in SENTENCES.items():
            yield from (Hit(folder, rule, place) for _ in pattern.findall(sentence.strip()))


def banned_in(name: str) -> set[str]:
    """The words of a name that are not used. What a test is called is a sentence."""
    banned = BANNED.keys() if name.startswith("test_") else (BANNED | NO_NAMES).keys()
    for exception in EXCEPTIONS:
        name = exception.sub("", name)
    return {part.lower() for part in _PARTS.findall(name)} & banned


Lines = list[tuple[int, str]]


def python_words(path: Path, text: str) -> tuple[Lines, Lines]:
    """The names that are made here (where they are used they are the same), and the texts: comments, docstrings, messages."""
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
    """SQL and protos are names but for their comments; of a page all is text."""
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
