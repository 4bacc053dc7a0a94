"""The JavaScript and the style sheets of the package, and checks that read them."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from notebook_probe.explorer.assets import sources
from tests.static.offenders import ROOT, at, read

PACKAGE = ROOT / "notebook_probe"
EXPLORER = PACKAGE / "explorer"
ENTRIES = ("js/panel", "runs_table/js/table")
MOST_LINES, MOST_COLUMNS, MOST_FILES = 250, 120, 20

IMPORT = re.compile(r'^import \{\s*([^}]*?),?\s*\} from "(\.[\w./]+)\.js";$', re.MULTILINE)
ANY_IMPORT = re.compile(r"""\bimport\b *[{*"'(](?!blobUrl\))""")  # a user's module, at run time
EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)
ANY_EXPORT = re.compile(r"^export .*$", re.MULTILINE)
THE_EXPORT = "export default { render };"
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(")
FETCHING = re.compile(
    r"https?://|fetch\(|XMLHttpRequest|import\((?!blobUrl\))|@import|url\("
    r"|blobUrl = (?!URL\.createObjectURL\()"
)

Texts: TypeAlias = Mapping[str, str]
"""Path of a file -> its text."""


def modules() -> Texts:
    """Return the modules that the panel and the table of runs are joined from."""
    found = {name: text for entry in ENTRIES for name, text in sources(EXPLORER, entry).items()}
    return {shown(f"{name}.js"): text for name, text in found.items()}


def shown(name: str) -> str:
    return (EXPLORER / name).relative_to(ROOT).as_posix()


def files(pattern: str) -> Texts:
    return {path.relative_to(ROOT).as_posix(): read(path) for path in sorted(PACKAGE.glob(pattern))}


def named(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    """Yield each imported name as the other module calls it, and as this one does."""
    for name in re.split(r",\s*", match[1]):
        theirs, _, ours = name.partition(" as ")
        yield theirs, ours or theirs


def target(module: str, match: re.Match[str]) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(module), f"{match[2]}.js"))


def wrong_imports(modules: Texts) -> Iterator[str]:
    """Find imports of another form, of names that are not exported, and of unused names."""
    exported = {module: EXPORT.findall(text) for module, text in modules.items()}
    for module, text in modules.items():
        found = {match.start(): match for match in IMPORT.finditer(text)}
        for match in ANY_IMPORT.finditer(text):
            if match.start() not in found:
                form = 'allowed: import { a, b } from "./c.js";'
                yield f"{at(module, text, match.start())}: an import of another form; {form}"
        for start, match in found.items():
            other = target(module, match)
            known = exported.get(other)
            for theirs, ours in named(match):
                if known is None or theirs not in known:
                    allowed = "no module" if known is None else f"it exports {', '.join(known)}"
                    yield f"{at(module, text, start)}: {theirs} is not in {other}; {allowed}"
                elif len(re.findall(rf"\b{ours}\b", text)) < 2:
                    yield f"{at(module, text, start)}: {ours} is imported and not used"


def wrong_exports(modules: Texts) -> Iterator[str]:
    """Find exports that no other module imports, and exports of another form."""
    imported = {
        (target(module, match), theirs)
        for module, text in modules.items()
        for match in IMPORT.finditer(text)
        for theirs, _ in named(match)
    }
    entries = {shown(f"{entry}.js") for entry in ENTRIES}
    for module, text in modules.items():
        for line in ANY_EXPORT.finditer(text):
            match = EXPORT.match(text, line.start())
            if match is None and (module not in entries or line[0] != THE_EXPORT):
                form = f"allowed: a function, const or class; {THE_EXPORT} in an entry"
                yield f"{at(module, text, line.start())}: an export of another form; {form}"
            elif match and (module, match[1]) not in imported:
                yield f"{at(module, text, line.start())}: no module imports {match[1]}"


def unreachable(modules: Texts, there: Texts) -> Iterator[str]:
    """Find files that no entry imports, directly or by others."""
    yield from (f"{path}:1: nothing imports it" for path in there if path not in modules)


def crowded(there: Texts) -> Iterator[str]:
    """Find folders with more files than one can survey."""
    for folder, n in Counter(map(posixpath.dirname, there)).items():
        if n > MOST_FILES:
            yield f"{folder}/: {n} files; at most {MOST_FILES}"


def long(there: Texts) -> Iterator[str]:
    """Find files and lines that are too long to read at once."""
    for path, text in there.items():
        lines = text.splitlines()
        if len(lines) > MOST_LINES:
            yield f"{path}:{len(lines)}: {len(lines)} lines; at most {MOST_LINES}"
        for number, line in enumerate(lines, 1):
            if len(line) > MOST_COLUMNS:
                yield f"{path}:{number}: {len(line)} characters; at most {MOST_COLUMNS}"


def occurring(pattern: re.Pattern[str], there: Texts, allowed: str) -> Iterator[str]:
    """Find what must occur nowhere."""
    for path, text in there.items():
        for match in pattern.finditer(text):
            yield f"{at(path, text, match.start())}: {match[0]!r}; {allowed}"


def styled_twice(sheets: Texts) -> Iterator[str]:
    """Find classes with a rule in two sheets, apart from the one of widths."""
    places: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for path, text in sheets.items():
        for match in re.finditer(r"^ *& (\.nbp-[\w-]+) \{", text, re.MULTILINE):
            places[match[1]].setdefault(path, at(path, text, match.start(1)))
    for name, where in places.items():
        if len(where) > 1:
            yield f"{', '.join(where.values())}: {name} is styled in {len(where)} sheets"


def outside_the_panel(sheets: Texts) -> Iterator[str]:
    """Find style rules that could reach beyond the panel."""
    for path, text in sheets.items():
        for start, selector in outer_selectors(text):
            if not all(".nbp-panel" in one for one in without_arguments(selector).split(",")):
                yield f"{at(path, text, start)}: {selector}; allowed: selectors with .nbp-panel"


def without_arguments(selector: str) -> str:
    """Return a selector without what is in parentheses, whose commas do not separate selectors."""
    while (shorter := re.sub(r"\([^()]*\)", "", selector)) != selector:
        selector = shorter
    return selector


def outer_selectors(sheet: str) -> Iterator[tuple[int, str]]:
    """Yield place and selector of the outermost rules; a container's are those within it."""
    blank = re.sub(r"/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match[0]), sheet, flags=re.S)
    open_at: list[bool] = []  # of each open brace, whether it is that of a container
    start = 0
    for brace in re.finditer(r"[{}]", blank):
        selector = blank[start : brace.start()]
        if brace[0] == "}":
            open_at.pop()
        else:
            container = selector.strip().startswith("@container")
            if all(open_at) and not container:
                yield start + len(selector) - len(selector.lstrip()), selector.strip()
            open_at.append(container)
        start = brace.end()
