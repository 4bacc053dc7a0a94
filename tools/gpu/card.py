"""Naming the machine: the card, its memory, the driver and versions, as JSON and as lines."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import Any

__all__ = ["card", "main"]


def card(device: str) -> dict[str, Any]:
    """Return what there is to know of the device; raises where it cannot compute."""
    import torch

    found: dict[str, Any] = {
        "device": device,
        "card": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
    }
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        free, total = torch.cuda.mem_get_info()
        found |= {
            "card": properties.name,
            "capability": f"{properties.major}.{properties.minor}",
            "memory_gib": round(total / 2**30, 1),
            "free_gib": round(free / 2**30, 1),
            "driver": _driver(),
            "bf16": torch.cuda.is_bf16_supported(),
        }
    computed = torch.ones(8, device=device).sum()
    found["computes"] = float(computed) == 8.0
    return found


def _driver() -> str:
    path = Path("/proc/driver/nvidia/version")
    return path.read_text().splitlines()[0] if path.is_file() else "unknown"


def main() -> int:
    """Print it, and write it where ``--json`` says; return 1 if the device does not compute."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path, required=True)
    asked = parser.parse_args()
    found = card(asked.device)
    asked.json.write_text(json.dumps(found, indent=1), "utf-8")
    for name, value in found.items():
        print(f"{name}: {value}")
    return int(not found["computes"])


if __name__ == "__main__":
    sys.exit(main())
