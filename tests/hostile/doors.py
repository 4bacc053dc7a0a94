"""Every way into a record, as a function of its place and a folder for what it writes."""

from __future__ import annotations

import contextlib
import io
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import xarray as xr

import notebook_probe as nbp
from notebook_probe.alerts.causes import causes
from notebook_probe.command_line import main
from notebook_probe.compare import align, differences, parting
from notebook_probe.record import RecordWriter
from tests.hostile.base import make_model

__all__ = ["DOORS"]


def _opened(use: Callable[[Any], object]) -> Callable[[Path, Path], object]:
    return lambda place, out: use(nbp.open_run(place))


def _command(*words: str) -> Callable[[Path, Path], object]:
    """A command that says its error in one line and nothing that steers the terminal."""

    def call(place: Path, out: Path) -> None:
        known = {"RUN": str(place), "OUT": str(out), "GOOD": str(out / "good.zarr")}
        said, blamed = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(blamed):
            code = main([_filled(word, known) for word in words])
        written = said.getvalue() + blamed.getvalue()
        steering = [one for one in written if not one.isprintable() and one != "\n"]
        assert not steering, f"steers the terminal: {steering[:5]}"
        assert code in (0, 2), code
        assert "Traceback" not in written

    return call


def _filled(word: str, known: Mapping[str, str]) -> str:
    for name, value in known.items():
        word = word.replace(name, value)
    return word


def _continue(**where: Any) -> Callable[[Path, Path], object]:
    def call(place: Path, out: Path) -> None:
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        copy = Path(shutil.copytree(place, out / "again.zarr", symlinks=True))
        with nbp.watch(model, optimizer, store=copy, **where):
            for _ in range(2):
                optimizer.zero_grad()
                model(torch.ones(8, 2)).square().mean().backward()
                optimizer.step()

    return call


def _annotate(place: Path, out: Path) -> None:
    copy = Path(shutil.copytree(place, out / "noted.zarr", symlinks=True))
    with RecordWriter.reopen(copy) as writer:
        writer.annotate(note="x")


def _series(run: Any) -> None:
    for name in ("grad_norm", "loss"):
        for module in ("0", ""):
            with contextlib.suppress(nbp.UnknownNameError):
                run.series(module, name)


def _catalogue(place: Path, out: Path) -> None:
    """One bad record never stops the table of the others."""
    with nbp.catalogue(out / "index.sqlite", root=out) as cat:
        cat.rebuild()
        assert any(str(row["run"]).endswith("good.zarr") for row in cat.runs())
        cat.runs("config.lr > 0")


def _runs_table(place: Path, out: Path) -> None:
    with nbp.catalogue(out / "table.sqlite", root=out) as cat:
        cat.runs().explore().close()


def _of_many(place: Path, out: Path) -> None:
    found = nbp.open_runs([out / "good.zarr", place])
    found.lineage()
    found["grad_norm"].isel(run=0).load()


def _panel(run: Any) -> None:
    from notebook_probe.explorer import Panel

    panel = Panel(run, None)
    panel.explorer  # noqa: B018
    panel.close()


DOORS: Mapping[str, Callable[[Path, Path], object]] = {
    "open_run": _opened(repr),
    "name": _opened(lambda run: (run.name, run.finished, run.is_written, run.revision)),
    "config": _opened(lambda run: (run.config, run.annotations, run.lineage)),
    "data": _opened(lambda run: run.data.load()),
    "data shown": _opened(lambda run: run.data._repr_html_()),
    "cube": _opened(lambda run: run.to_xarray("cube").load()),
    "tree": _opened(lambda run: run.to_xarray("tree").load()),
    "chunked": _opened(lambda run: run.to_xarray(chunks={}).sum().compute()),
    "series": _opened(_series),
    "thinned": _opened(lambda run: run.thinned("", "loss", n_points=50)),
    "blobs": _opened(lambda run: [a.load() for q in run.blobs.values() for a in q.values()]),
    "parent": _opened(lambda run: run.parent and run.parent.data.load()),
    "alerts": _opened(lambda run: str(run.alerts)),
    "find_alerts": _opened(lambda run: run.find_alerts()),
    "causes": _opened(lambda run: causes(run.alerts)),
    "graph": _opened(lambda run: run.graph()),
    "dataset_graph": _opened(lambda run: run.dataset_graph()),
    "looks": _opened(lambda run: run.looks),
    "to_html": lambda place, out: nbp.open_run(place).to_html(out / "panel.html"),
    "explorer": _opened(_panel),
    "to_dataframe": _opened(lambda run: run.to_dataframe()),
    "to_netcdf": lambda place, out: nbp.open_run(place).to_netcdf(out / "run.nc"),
    "to_npy": lambda place, out: nbp.open_run(place).to_npy(out / "npy"),
    "pack": lambda place, out: nbp.open_run(place).pack(out / "run.zip"),
    "open_runs": _of_many,
    "engine": lambda place, out: xr.open_dataset(place, engine="notebook_probe").load(),
    "catalogue": _catalogue,
    "runs table": _runs_table,
    "parting": lambda place, out: parting(
        nbp.open_run(place), nbp.open_run(out / "good.zarr"), "grad_norm"
    ),
    "align": lambda place, out: align(nbp.open_run(place), nbp.open_run(out / "good.zarr")),
    "differences": lambda place, out: differences(
        nbp.open_run(place), nbp.open_run(out / "good.zarr")
    ),
    "show": _command("show", "RUN"),
    "show --json": _command("show", "RUN", "--json"),
    "compare": _command("compare", "GOOD", "RUN"),
    "explain": _command("explain", "RUN"),
    "explain --json": _command("explain", "RUN", "--json"),
    "series of a pattern": _command("series", "RUN", "*", "*"),
    "modules": _command("tree", "RUN", "--json"),
    "quantities": _command("quantities", "RUN"),
    "alerts in a line each": _command("alerts", "RUN"),
    "follow": _command("follow", "RUN", "--timeout", "0"),
    "plot --ascii": _command("plot", "RUN", "*", "*", "--ascii", "--limit", "0"),
    "export csv": _command("export", "RUN", "--to", "OUT/a.csv"),
    "export json": _command("export", "RUN", "--to", "OUT/a.json"),
    "export nc": _command("export", "RUN", "--to", "OUT/a.nc"),
    "export zip": _command("export", "RUN", "--to", "OUT/a.zip"),
    "runs": _command("runs", "--root", "OUT", "--catalogue", "OUT/c.sqlite"),
    "continue": _continue(),
    "continue earlier": _continue(step=4),
    "continue on a branch": _continue(branch=True),
    "annotate": _annotate,
}

warnings.simplefilter("ignore")
