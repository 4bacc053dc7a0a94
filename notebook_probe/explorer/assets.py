"""The browser side as two texts: one ES module joined from the files of ``js/``, one style sheet.

A widget is given text, not files: a path is watched and never let go again. The files stay plain
ES modules; joining drops the imports between them, so every top-level name must be unique.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

__all__ = ["css", "esm", "module_names", "module_text"]

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default\b)", re.MULTILINE)
_ENTRY = "panel"


def module_text(name: str) -> str:
    """Source of one module, as it lies in ``js/``."""
    return _read(f"js/{name}.js")


@cache
def module_names() -> tuple[str, ...]:
    """Every module the panel needs, each after all it imports; the panel itself is last."""
    ordered: dict[str, None] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ImportError(f"modules import each other: {' -> '.join((*above, name))}")
        if name not in ordered:
            for needed in _IMPORT.findall(module_text(name)):
                visit(needed, (*above, name))
            ordered[name] = None

    visit(_ENTRY, ())
    return tuple(ordered)


@cache
def esm() -> str:
    """The panel as one ES module whose default export is ``{ render }``.

    Examples
    --------
    >>> "export default { render };" in esm()
    True
    """
    return "\n".join(_joinable(module_text(name)) for name in module_names())


@cache
def css() -> str:
    """The style sheet; every rule lies under ``.nbp-panel``."""
    return _read("panel.css")


def _joinable(source: str) -> str:
    return _EXPORT.sub("", _IMPORT.sub("", source))


def _read(path: str) -> str:
    return files(__package__).joinpath(path).read_text(encoding="utf-8")
