"""How to go on with a record that is there already, as its user says it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from notebook_probe.errors import RecordFormatError, RecordMismatchError

__all__ = ["Resume", "ResumeLike", "read_resume"]

ResumeLike: TypeAlias = bool | int | str | None

ALLOWED = "None, True, False, a step from 0, 'branch' or 'branch(step)'"


@dataclass(frozen=True, slots=True)
class Resume:
    """What `read_resume` has read."""

    step: int | None = None
    """The step to go on at; None for the one after the last."""
    branches: bool = False
    """What is there stays, and the new rows are a branch of their own."""
    exists: bool | None = None
    """Whether a record must be there, or must not."""

    @property
    def names_a_record(self) -> bool:
        """Whether it makes sense only for a certain record."""
        return self.exists is True or self.step is not None

    def check(self, folder: Path, exists: bool) -> None:
        """Raise the error for a record that is missing, or in the way."""
        if self.exists and not exists:
            raise RecordFormatError(f"no record to resume at {folder}")
        if self.exists is False and exists:
            raise RecordMismatchError(
                f"resume=False: {folder} holds a record already; "
                f"give another folder, or resume=True to go on with it"
            )


def read_resume(resume: ResumeLike) -> Resume:
    """Read the ``resume`` argument.

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
