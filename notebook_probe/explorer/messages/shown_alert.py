"""Values of the widget's traits that show an alert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from notebook_probe.alerts import Alert
from notebook_probe.errors import UnknownNameError
from notebook_probe.explorer.messages.selection import PanelSelection

__all__ = ["showing"]


def showing(
    alert: Alert, recorded: Mapping[str, Sequence[str]], selection: PanelSelection
) -> dict[str, object]:
    """Return the traits that show it: its series in addition to the others, and its step.

    The heat map is of the first of its quantities that two modules have; the window is moved only
    where the step is outside.

    Parameters
    ----------
    recorded : mapping of str to sequence of str
        Quantity to the modules that have values of it.

    Raises
    ------
    UnknownNameError
        Nothing that the alert refers to is recorded any more.
    """
    there = [name for name in alert.quantities if recorded.get(name)]
    # Rows may have been removed since, or another branch is shown.
    series = _series(alert, there, recorded)
    if not series:
        names = ", ".join(alert.quantities) or alert.rule
        raise UnknownNameError(f"{names}: not recorded any more where {alert.rule} was found")
    drawn = [*selection.series, *(one for one in series if one not in selection.series)]
    home = next((name for name in there if len(recorded[name]) > 1), selection.home)
    window = _window_with(alert.step, selection.window)
    return {"home": home, "series": tuple(drawn), "window": window, "step": alert.step}


def _series(
    alert: Alert, quantities: Sequence[str], recorded: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Return the series of the first module that has any."""
    for module in alert.modules:
        found = [(module, name) for name in quantities if module in recorded[name]]
        if found:
            return found
    return []


def _window_with(step: int, window: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the window; if the step is outside, an equally wide one around it."""
    if window is None or window[0] <= step <= window[1]:
        return window
    width = window[1] - window[0]
    first = max(0.0, float(round(step - width / 2)))
    return first, first + width
