"""Beginning to keep the output of a run."""

from __future__ import annotations

from notebook_probe.run.run import Run

__all__ = ["keep_output"]


def keep_output(run: Run) -> None:
    """Keep the last 200 lines that this process prints, from now on until the run is closed.

    They are in the panel and in events of kind ``"output"``, with the step of each line, so that
    they are read later and elsewhere, as by ``nbp output``. The output itself does not change: it
    is copied after its stream has taken it. If there is much output, the record has the newest
    lines of every few seconds, and less often later: about 256,000 characters, however long it
    trains. Lines are cut after 400 characters. All that is printed is stored: print no secrets.

    Parameters
    ----------
    run : Run
        A run of this process. A second call changes nothing.

    Raises
    ------
    ClosedRunError

    Examples
    --------
    >>> nbp.keep_output(run)  # doctest: +SKIP
    """
    run.controls.output.begin()
