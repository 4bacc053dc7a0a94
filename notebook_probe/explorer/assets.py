"""The browser side as two texts: an ES module joined from ``js/``, a style sheet from ``css/``.

A widget gets text, not files: a path would be watched permanently. The files stay plain ES modules
that a browser could load directly. When joined, each but the panel itself becomes a constant with
its exports, so that modules share no names, and an import takes them from it. Documentation stays
in the files: with its types it is a fifth of their text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

__all__ = ["css", "esm", "joined", "sources"]

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[\w./]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b\W*(\w+))", re.MULTILINE)
_DOCUMENTATION = re.compile(r"^ */\*\*.*?\*/\n", re.MULTILINE | re.DOTALL)
_ENTRY = "panel"
_FIRST_SHEET, _LAST_SHEET = "base.css", "widths.css"


@cache
def esm() -> str:
    """Return the panel as one ES module whose default export is ``{ render }``.

    Examples
    --------
    >>> "export default { render };" in esm()
    True
    """
    return joined(files(__package__) / "js")


@cache
def css() -> str:
    """Return the style sheet; every rule is below ``.nbp-panel``.

    General rules come first, rules that depend on the width last.
    """
    sheets = {sheet.name: sheet for sheet in _sheets(files(__package__) / "css")}
    between = sorted(sheets.keys() - {_FIRST_SHEET, _LAST_SHEET})
    ordered = (_FIRST_SHEET, *between, _LAST_SHEET)
    return "\n".join(sheets[name].read_text(encoding="utf-8") for name in ordered)


def _sheets(folder: Traversable) -> Iterator[Traversable]:
    for one in folder.iterdir():
        if one.is_dir():
            yield from _sheets(one)
        else:
            yield one


def joined(folder: Traversable, entry: str = _ENTRY) -> str:
    """Join ``panel.js``, or another entry of ``folder``, and all its imports to one ES module."""
    found = sources(folder, entry)
    return "\n".join(_joinable(name, source, entry) for name, source in found.items())


def sources(folder: Traversable, entry: str = _ENTRY) -> dict[str, str]:
    """Return the source of each module, after all its imports; the entry is last.

    A module is named by its path in ``folder``, without ``.js``.

    Raises
    ------
    ImportError
        A file or a name that is imported does not exist, or modules import each other.
    """
    ordered: dict[str, str] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ImportError(f"modules import each other: {' -> '.join((*above, name))}")
        if name in ordered:
            return
        source = _read(folder, name, above)
        for names, path in _IMPORT.findall(source):
            needed = _resolved(path, name)
            visit(needed, (*above, name))
            _check_exported(names, needed, ordered[needed], name)
        ordered[name] = source

    visit(entry, ())
    return ordered


def _read(folder: Traversable, name: str, above: tuple[str, ...]) -> str:
    try:
        return folder.joinpath(f"{name}.js").read_text(encoding="utf-8")
    except FileNotFoundError:
        importer = f"{above[-1]}.js imports it" if above else "the panel begins there"
        raise ImportError(f"there is no {name}.js in {folder}; {importer}") from None


def _check_exported(names: str, needed: str, source: str, importer: str) -> None:
    exported = _EXPORT.findall(source)
    for name, _ in _named(names):
        if name not in exported:
            known = ", ".join(exported) or "nothing"
            raise ImportError(
                f"{importer}.js imports {name} from {needed}.js, which exports {known}"
            )


def _joinable(name: str, source: str, entry: str) -> str:
    """Wrap a module in a scope; the entry is last and has the outermost scope."""

    def destructured(match: re.Match[str]) -> str:
        pairs = (f"{theirs}: {ours}" if ours else theirs for theirs, ours in _named(match[1]))
        return f"const {{ {', '.join(pairs)} }} = {_constant(_resolved(match[2], name))};"

    code = _DOCUMENTATION.sub("", source)
    body = _EXPORT.sub("", _IMPORT.sub(destructured, code))
    if name != entry:
        exported = ", ".join(_EXPORT.findall(source))
        body = f"const {_constant(name)} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"
    return f"// js/{name}.js\n{body}"


def _named(names: str) -> list[tuple[str, str]]:
    """Parse ``"a, b as c"`` into ``[("a", ""), ("b", "c")]``."""
    return re.findall(r"(\w+)(?:\s+as\s+(\w+))?", names)


def _resolved(path: str, importer: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))


def _constant(name: str) -> str:
    return "$" + name.replace("/", "$")
