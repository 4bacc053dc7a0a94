"""Ways to continue a paused training without a panel."""

from __future__ import annotations

import builtins
import sys
import threading

__all__ = ["how_to_resume"]


def how_to_resume() -> str:
    """Return how a training paused on this thread can continue without a panel, in words.

    Empty if there is no way: in a job on the main thread, without a terminal, a notebook or
    another thread of the user's own.
    """
    resume = "run.resume() goes on"
    # A paused background thread leaves the main thread free to resume it.
    if threading.current_thread() is not threading.main_thread():
        return resume
    # A thread that is not a daemon belongs to the program and may be the one that resumes.
    others = [one for one in threading.enumerate() if not one.daemon]
    if len(others) > 1:
        return f"{resume} from another thread, Ctrl-C ends the loop"
    # IPython sets this name; a kernel has no terminal, but an interrupt button.
    if getattr(builtins, "__IPYTHON__", False):
        return "run.explore() before the loop shows a panel to go on in; interrupting ends it"
    # Without a terminal Ctrl-C may never come, and the job would wait until its time is over.
    if sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty():
        return "Ctrl-C ends the loop; a panel, or training in the background, can go on"
    return ""
