"""The results in a file, which holds after every cell all that was measured so far."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from notebook_probe.quantities.define.costs import Cell, Costs, MeasuredCost, read_costs

__all__ = ["Saved"]


class Saved:
    """Cells by kind, name and workload; without a file they are only remembered.

    Parameters
    ----------
    file : Path, optional
        What it holds already is kept.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        has_some = file is not None and file.exists()
        self.costs = read_costs(file.read_text("utf-8")) if has_some else Costs()  # type: ignore[union-attr]

    def get(self, kind: str, name: str, workload: str) -> Cell | None:
        """What is known of it."""
        rows: Mapping[str, Mapping[str, Cell]] = getattr(self.costs, kind)
        return rows.get(name, {}).get(workload)

    def put(self, kind: str, name: str, workload: str, cell: Cell) -> None:
        """Know one more, in the file as well."""
        rows = {key: {**getattr(self.costs, key)} for key in ("presets", "quantities")}
        rows[kind][name] = {**rows[kind].get(name, {}), workload: cell}
        self.costs = Costs(_machine(), rows["presets"], rows["quantities"])
        self._write()

    def keep(self, kind: str, names: list[str], workloads: list[str]) -> None:
        """Forget what is called otherwise by now; the rest in this order."""
        rows = {key: getattr(self.costs, key) for key in ("presets", "quantities")}
        rows[kind] = {
            name: {each: cells[each] for each in workloads if each in cells}
            for name in names
            if (cells := rows[kind].get(name))
        }
        self.costs = Costs(self.costs.machine, rows["presets"], rows["quantities"])
        self._write()

    def _write(self) -> None:
        """All or nothing: an interrupt leaves the file as it was."""
        if self._file is None:
            return
        fresh = self._file.with_suffix(".new")
        fresh.write_text(_text(self.costs), "utf-8")
        fresh.replace(self._file)


def _text(costs: Costs) -> str:
    """A line per name, so that a change of one is a change of one line."""
    kinds = (
        f'"{kind}": {{\n'
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(_plain(row))}" for name, row in rows.items())
        + "\n}"
        for kind, rows in (("presets", costs.presets), ("quantities", costs.quantities))
    )
    return f'{{"machine": {json.dumps(costs.machine)},\n' + ",\n".join(kinds) + "}\n"


def _plain(row: Mapping[str, Cell]) -> dict[str, Any]:
    return {
        name: asdict(cell) if isinstance(cell, MeasuredCost) else cell for name, cell in row.items()
    }


def _machine() -> str:
    return f"{_processor()}, one thread, torch {torch.__version__.partition('+')[0]}"


def _processor() -> str:
    """As the system calls it."""
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        for line in listed.read_text("utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
