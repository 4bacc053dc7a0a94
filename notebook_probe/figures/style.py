"""Colors, numbers and positions that all pictures share; the same colors as in the panel."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, Sequence
from io import BytesIO
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.ticker import Formatter, FuncFormatter, LogLocator, MaxNLocator, NullLocator

__all__ = [
    "BAD",
    "BRAND",
    "EDGE",
    "FONT",
    "HEADING",
    "INK",
    "LOST_COLOUR",
    "MOST_DIGITS",
    "RUN_DASHES",
    "SOFT",
    "Picture",
    "colour",
    "dash",
    "digits_apart",
    "drawable",
    "drawing",
    "encoded",
    "lighter",
    "line_style",
    "named_places",
    "number",
    "plain_axes",
    "short_path",
    "shortened",
    "text_inches",
    "ticks",
]

# Colors that color-blind readers can tell apart.
OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442")
DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1.5, 2)), (0, (6, 2, 1.5, 2)))
RUN_DASHES: tuple[Any, ...] = ((0, (5, 2)), (0, (1.5, 2)), (0, (6, 2, 1.5, 2)), (0, (10, 3)))
"""Dashes of other runs; the run itself is solid."""
INK, SOFT, EDGE, BRAND = "#1f2328", "#57606a", "#d0d7de", "#0b62c4"
_LEADING_PART = re.compile(r"(^|\.)([A-Za-z_])\w*?[A-Za-z_](\d*)(?=\.)")
FEWEST_DIGITS, MOST_DIGITS = 3, 12
"""Limits for the digits of a number in a picture."""
LONGEST = 7
"""Maximum characters of a number next to an axis."""
LONGEST_TEXT = 400
"""Characters of a text that any picture has room for."""
WARNING, BAD = "#b4530a", "#b3261e"
"""Alerts, as in the panel."""
LOST_COLOUR = "#ff2a55"
"""NaN or infinite: a red that viridis does not contain."""
# The font that comes with matplotlib: widths, and thus pictures, are the same on every machine.
FONT: dict[str, Any] = {"family": "DejaVu Sans", "size": 9}
HEADING = FontProperties(**FONT)


class Picture(Figure):
    """A figure that a notebook shows, with or without pyplot; a file gets the background."""

    ground = "white"

    def savefig(self, fname: Any, *, transparent: bool | None = None, **options: Any) -> None:
        """Write a file on the background for which the colors are made, in any style of the user.

        `plt.style.use("dark_background")` would write grey names on black.
        """
        if not transparent:
            options.setdefault("facecolor", self.ground)
        super().savefig(fname, transparent=transparent, **options)

    def draw(self, renderer: Any) -> None:
        """Draw texts literally: a name with dollar signs is no formula, any name is drawn."""
        for axes in self.axes:
            for axis in (axes.xaxis, axes.yaxis):
                axis.get_ticklabels()  # makes those that drawing would add
        for text in self.findobj(Text):
            text.set_parse_math(False)
            text.set_text(drawable(text.get_text()))
        super().draw(renderer)

    def _repr_png_(self) -> bytes:
        return encoded(self, "png")


drawing = threading.RLock()
"""Lock around matplotlib, whose caches of fonts and texts are not thread-safe."""


def colour(index: int) -> tuple[float, float, float]:
    """Okabe and Ito's colors, darkened until their contrast with white is 3 to 1."""
    red, green, blue = to_rgb(OKABE_ITO[index % len(OKABE_ITO)])
    share = 1.0
    # Contrast by WCAG 2, which asks for 3 of graphics.
    while 1.05 / (_luminance(red * share, green * share, blue * share) + 0.05) < 3.0:
        share -= 0.04
    return red * share, green * share, blue * share


def dash(index: int) -> Any:
    """Return the dash pattern, which changes when the colors are used up."""
    return DASHES[index // len(OKABE_ITO) % len(DASHES)]


def line_style(index: int) -> dict[str, Any]:
    """Return the color and the dash pattern of a series, for ``Line2D.set``."""
    return {"color": colour(index), "linestyle": dash(index)}


def lighter(shade: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return the same color, closer to white; for other runs."""
    red, green, blue = (1 - 0.65 * (1 - channel) for channel in shade)
    return red, green, blue


def number(value: float, digits: int = FEWEST_DIGITS) -> str:
    r"""Three significant digits, or so many; whole thousands with thin spaces.

    Examples
    --------
    >>> number(0.00934), number(1240), number(3.2e-7), number(1.3854, 4)
    ('0.00934', '1\u2009240', '3.2e-07', '1.385')
    """
    if 1000 <= abs(value) < 1e7:
        decimals = max(0, digits - len(f"{abs(value):.0f}"))
        return f"{value:,.{decimals}f}".replace(",", "\u2009")
    return f"{value:.{digits}g}"


def digits_apart(values: Iterable[float]) -> int:
    """Return how many digits `number` needs to distinguish these values.

    Examples
    --------
    >>> digits_apart([0.5, 1.0, 1.5]), digits_apart([1.38, 1.382, 1.384])
    (3, 4)
    """
    known = {*values}
    enough = (n for n in range(FEWEST_DIGITS, MOST_DIGITS) if _are_apart(known, n))
    return next(enough, MOST_DIGITS)


def _are_apart(values: Collection[float], digits: int) -> bool:
    return len({number(value, digits) for value in values}) == len(values)


def shortened(text: str, most: int) -> str:
    """Return the text, or its end after an ellipsis: the end of a path identifies the module.

    Examples
    --------
    >>> shortened("encoder.layers.11.attention", 14)
    '…s.11.attention'
    """
    return text if len(text) <= most + 1 else "…" + text[-most:]


def short_path(path: str, most: int) -> str:
    """Return a module path that fits, as in the panel: leading parts give way, numbers stay.

    The end alone would be the same for the layers of a deep network.

    Examples
    --------
    >>> short_path("encoder.layer.11.attention.self.query", 26)
    'e.l.11.attention.self.query'
    >>> short_path("encoder.layer.11.attention_that_has_a_long_name", 26)
    'e.l.11.…hat_has_a_long_name'
    """
    while len(path) > most + 1:
        shorter = _LEADING_PART.sub(r"\1\2\3", path, count=1)
        if shorter == path:
            head, dot, end = path.rpartition(".")
            room = most - len(head + dot)
            if 2 * room < most:
                return shortened(path, most)
            return f"{head}{dot}{shortened(end, room)}"
        path = shorter
    return path


def drawable(text: str) -> str:
    r"""Return the text, with lone surrogates spelled out: matplotlib refuses them.

    Examples
    --------
    >>> drawable("café \ud800")
    'café \\ud800'
    """
    return text.encode(errors="backslashreplace").decode()


def text_inches(text: str) -> float:
    """Width of a text in the pictures' font."""
    with drawing:
        shown = drawable(text[:LONGEST_TEXT])
        width, _, _ = text_to_path.get_text_width_height_descent(shown, HEADING, ismath=False)
    # Points, of which an inch has 72.
    return float(width) / 72


def plain_axes(axes: Axes, grid: bool) -> None:
    """Remove the frame, soften the ticks, and draw faint horizontal lines if ``grid``."""
    axes.set_facecolor("none")  # that of the picture, and not of a style
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(
        colors=SOFT, labelsize=FONT["size"], labelfontfamily=FONT["family"], length=0, pad=5
    )
    if grid:
        axes.grid(True, axis="y", color=EDGE, linewidth=0.8)
        axes.set_axisbelow(True)


def ticks(axis: Any, log: bool, unit: str = "", longest: int = LONGEST) -> None:
    """Whole ticks with plain numbers; on a log axis also 2 and 5 where decades are few.

    Numbers have as many digits as tell them apart, where none has more characters than ``longest``.
    """
    low, high = axis.get_view_interval()
    few = log and high < 100 * low
    axis.set_major_locator(
        LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=8)
        if log
        else MaxNLocator(8, steps=[1, 2, 5, 10])
    )
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(_NumberTicks(unit, longest))


class _NumberTicks(Formatter):
    """Format each tick with `number`, with distinct texts if there is room."""

    def __init__(self, unit: str, longest: int) -> None:
        self._unit, self._longest, self._digits = unit, longest, FEWEST_DIGITS

    # matplotlib gives all ticks here before it asks for the text of any.
    def set_locs(self, locs: Any) -> None:
        super().set_locs(locs)
        digits = digits_apart(locs)
        fits = all(len(number(one, digits)) <= self._longest for one in locs)
        self._digits = digits if fits else FEWEST_DIGITS

    def __call__(self, value: float, place: int | None = None) -> str:
        return number(value, self._digits) + self._unit


def encoded(figure: Figure, kind: Literal["png", "svg"]) -> bytes:
    """Return the picture as a file."""
    with drawing:
        buffer = BytesIO()
        ground = getattr(figure, "ground", Picture.ground)
        figure.savefig(buffer, format=kind, dpi=110, facecolor=ground)
        return buffer.getvalue()


def _luminance(red: float, green: float, blue: float) -> float:
    """Return the WCAG 2 relative luminance of an sRGB color."""
    linear = [
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
        for share in (red, green, blue)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def named_places(axis: Any, names: Sequence[str]) -> None:
    """Ticks at whole positions, labeled with the names there."""
    axis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    axis.set_major_formatter(
        FuncFormatter(lambda at, _: names[int(at)] if 0 <= at < len(names) else "")
    )
