"""The code of docs/how_to/frameworks.md, library by library."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

__all__ = ["run_section"]

PAGE = (Path(__file__).parents[2] / "docs" / "how_to" / "frameworks.md").read_text("utf-8")


def run_section(heading: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run the blocks of a section as they are printed; what they have made, by name."""
    _, _, rest = PAGE.partition(f"\n## {heading}\n")
    blocks = re.findall(r"^```python\n(.*?)^```", rest.partition("\n## ")[0], re.DOTALL | re.M)
    assert blocks
    for block in blocks:
        exec(block, names)
    return names
