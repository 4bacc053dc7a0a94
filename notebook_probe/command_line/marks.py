"""``tag``, ``note``, ``archive``, ``restore``: marks on runs, stored in their records."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from notebook_probe.catalogues.marks import Marks, change
from notebook_probe.command_line.asked import RUN, add_catalogue, location_of
from notebook_probe.command_line.printed import plain

__all__ = ["add_archive", "add_note", "add_restore", "add_tag"]


def add_tag(parser: ArgumentParser) -> None:
    """Add the options of ``tag``."""
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("tags", nargs="+", metavar="TAG")
    parser.add_argument("--remove", action="store_true", help="remove the tags")
    add_catalogue(parser)
    parser.set_defaults(do=_tag)


def add_note(parser: ArgumentParser) -> None:
    """Add the options of ``note``."""
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("text", metavar="TEXT", help="replaces the previous note; '' removes it")
    add_catalogue(parser)
    parser.set_defaults(do=_note)


def add_archive(parser: ArgumentParser) -> None:
    """Add the options of ``archive``."""
    _add_put_aside(parser, archived=True)


def add_restore(parser: ArgumentParser) -> None:
    """Add the options of ``restore``."""
    _add_put_aside(parser, archived=False)


def _add_put_aside(parser: ArgumentParser, *, archived: bool) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUN)
    add_catalogue(parser)
    parser.set_defaults(do=lambda asked: _put_aside(asked, archived))


def _tag(asked: Namespace) -> None:
    remove = asked.remove
    _change(
        asked.run,
        asked,
        lambda marks: marks.untagged(asked.tags) if remove else marks.tagged(asked.tags),
    )


def _note(asked: Namespace) -> None:
    _change(asked.run, asked, lambda marks: marks.noted(asked.text))


def _put_aside(asked: Namespace, archived: bool) -> None:
    for one in asked.runs:
        _change(one, asked, lambda marks: marks.put_aside(archived))


def _change(word: str, asked: Namespace, how: Callable[[Marks], Marks]) -> None:
    place = location_of(word, asked)
    said = change(place, how)
    parts = (", ".join(said["tags"]), said["note"], "archived" if said["archived"] else "")
    print(plain(f"{place}: {'; '.join(filter(None, parts)) or 'no marks'}"))
