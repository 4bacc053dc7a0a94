"""Location and kind of the continuation of a record."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from notebook_probe.checks import is_whole
from notebook_probe.errors import RecordFormatError, RecordMismatchError

__all__ = ["Resume", "ResumeLike", "read_resume", "resume_at"]

ResumeLike: TypeAlias = "Resume | bool | int | str | None"

ALLOWED = "None, True, False, a step from 0, 'branch' or 'branch(step)'"


@dataclass(frozen=True, slots=True)
class Resume:
    """Continuation of a record: at which step, and what happens to its rows."""

    step: int | None = None
    """Step at which to continue; None for the one after the last."""
    branches: bool = False
    """True if the existing rows stay, and the new rows are a branch."""
    exists: bool | None = None
    """True if a record must exist, False if it must not."""

    def __str__(self) -> str:
        """Return the arguments of `notebook_probe.watch` that mean it."""
        given = [
            *([] if self.exists is None or self.branches else [f"resume={self.exists}"]),
            *([] if self.step is None else [f"step={self.step}"]),
            *(["branch=True"] if self.branches else []),
        ]
        return ", ".join(given) or "resume=None"

    @property
    def names_a_record(self) -> bool:
        """True if the argument makes sense only for a certain record."""
        return self.exists is True or self.step is not None

    def check(self, folder: Path, exists: bool) -> None:
        """Raise the error for a record that is missing, or in the way."""
        if self.exists and not exists:
            raise RecordFormatError(f"no record to resume at {folder}")
        if self.exists is False and exists:
            raise RecordMismatchError(
                f"resume=False: {folder} holds a record already; "
                f"give another folder, or resume=True to continue it"
            )


def resume_at(resume: bool | int | None, step: int | None = None, branch: bool = False) -> Resume:
    """Read the arguments of `notebook_probe.watch` of these names.

    A whole number as ``resume`` is the ``step``.

    Raises
    ------
    TypeError
        ``resume`` is text, or another argument is of another type; two steps are given.
    ValueError
        A step below 0; a branch of a record that must not exist.

    Examples
    --------
    >>> resume_at(True, step=1000, branch=True)
    Resume(step=1000, branches=True, exists=True)
    """
    if is_whole(resume) and step is None:
        return resume_at(None, resume, branch)
    if resume is not None and not isinstance(resume, bool):
        raise TypeError(
            f"resume={resume!r}: None, True, False or a step is expected{_spelled(resume)}"
        )
    if not isinstance(branch, bool):
        raise TypeError(f"branch={branch!r}: True or False is expected; step= says where")
    if step is not None and not is_whole(step):
        raise TypeError(f"step={step!r}: a whole number is expected")
    if step is not None and step < 0:
        raise ValueError(f"step={step}: a step from 0 is expected")
    if branch and resume is False:
        raise ValueError("resume=False and branch=True: a branch continues a record that exists")
    # A branch has something to branch from, so that the record must exist.
    return Resume(step, branches=branch, exists=True if branch else resume)


def _spelled(resume: object) -> str:
    """Return how a value of an earlier ``resume`` is written, as the end of an error."""
    try:
        found = read_resume(resume)  # type: ignore[arg-type]
    except ValueError:
        return ""
    step = "" if found.step is None else f", step={found.step}"
    return f"; write resume=True{step}{', branch=True' if found.branches else ''}"


def read_resume(resume: ResumeLike) -> Resume:
    """Read the ``resume`` argument of a `RecordWriter`.

    Raises
    ------
    ValueError
        For anything that is not allowed.

    Examples
    --------
    >>> read_resume("branch(1000)")
    Resume(step=1000, branches=True, exists=True)
    >>> read_resume(1000)
    Resume(step=1000, branches=False, exists=None)
    """
    if isinstance(resume, Resume):
        return resume
    if resume is None or isinstance(resume, bool):  # before int: True is no step
        return Resume(exists=resume)
    if isinstance(resume, int) and resume >= 0:
        return Resume(int(resume))
    found = (
        re.fullmatch(r"\s*branch\s*(?:\(\s*(\d+)\s*\))?\s*", resume)
        if isinstance(resume, str)
        else None
    )
    if found is None:
        raise ValueError(f"resume={resume!r}; allowed: {ALLOWED}")
    return Resume(int(found[1]) if found[1] else None, branches=True, exists=True)
