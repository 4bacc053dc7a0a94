"""File names for modules of any name."""

from __future__ import annotations

from hashlib import blake2b
from urllib.parse import quote

__all__ = ["SafeNames", "safe_name"]

LONGEST = 150
"""Characters kept of a long name; file systems stop at 255, extensions included."""
# Windows opens a device by each of these names, whatever the extension.
DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{i}" for port in ("com", "lpt") for i in range(10))]
)


def safe_name(name: str) -> str:
    """``name`` percent-encoded: ASCII, no separator, never hidden, ``.`` or ``..``, not too long.

    Different names stay different; a long one is cut and ends in a digest of the whole.

    Examples
    --------
    >>> safe_name("layer1.0.conv2"), safe_name("../etc"), safe_name("cell[0]")
    ('layer1.0.conv2', '%2E.%2Fetc', 'cell%5B0%5D')
    """
    # quote leaves ~ as it is, which marks digests and numbers here.
    text = quote(name, safe="", errors="backslashreplace").replace("~", "%7E")
    if not text or text.startswith(".") or text.split(".")[0].casefold() in DEVICES:
        text = f"%{ord(text[0]):02X}{text[1:]}" if text else "%"
    if len(text) <= LONGEST:
        return text
    digest = blake2b(name.encode(errors="backslashreplace"), digest_size=8).hexdigest()
    return f"{text[:LONGEST]}~{digest}"


class SafeNames:
    """File names of one folder, also where upper and lower case are the same."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def name(self, of: str) -> str:
        """Return a file name for ``of``; call once per name."""
        text = safe_name(of)
        number = 1
        while text.casefold() in self._taken:
            number += 1
            text = f"{safe_name(of)}~{number}"
        self._taken.add(text.casefold())
        return text
