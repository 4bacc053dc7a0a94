"""Saved views: their file, what they show in another run, and the panel that keeps them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import ProbeError, UnknownNameError
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.panel import Panel
from notebook_probe.explorer.parts.panel_views import SavedViewsPart
from notebook_probe.explorer.parts.part import Seen
from notebook_probe.explorer.saved_views import ViewFile, ViewSettings

GRADIENTS = ViewSettings(
    home="grad_norm",
    series=(("blocks.*", "grad_norm"), ("head", "weight_norm")),
    log_y=True,
    y_limits=(0.001, 10.0),
    smooth=0.5,
)


class Blocks(nn.Module):
    def __init__(self, n_blocks: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(nn.Linear(3, 3) for _ in range(n_blocks)))
        self.head = nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(self.blocks(x))
        return found


def recorded(path: Path, n_blocks: int = 2) -> nbp.OpenedRun:
    """A finished run of three steps of a model of some blocks."""
    torch.manual_seed(0)
    model = Blocks(n_blocks)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = nbp.watch(model, optimizer, store=path, probes=None, budget=None)
    run.attach("*", "grad_norm")
    run.attach("*", "weight_norm")
    for _ in range(3):
        model(torch.ones(2, 3)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    run.close()
    return nbp.open_run(path)


def test_a_view_is_the_same_after_the_file(tmp_path: Path) -> None:
    file = ViewFile(tmp_path, "first.zarr")
    file.save("gradients", GRADIENTS)
    file.save("plain", ViewSettings())
    assert file.names == ["gradients", "plain"]
    assert file.view("gradients") == GRADIENTS
    assert ViewFile(tmp_path, "second.zarr").view("gradients") == GRADIENTS
    assert file.last == "plain"
    assert ViewFile(tmp_path, "second.zarr").last == ""


def test_the_file_is_plain_json_that_a_person_can_write(tmp_path: Path) -> None:
    view = {"home": "grad_norm", "series": [["blocks.*", "grad_norm"]], "smooth": 0}
    (tmp_path / "panel_views.json").write_text(json.dumps({"views": {"mine": view}}))
    found = ViewFile(tmp_path, "first.zarr").view("mine")
    assert found == ViewSettings(home="grad_norm", series=(("blocks.*", "grad_norm"),), smooth=0.0)


def test_a_view_over_epochs_is_kept_and_applied_to_a_run_without_them(tmp_path: Path) -> None:
    over_epochs = ViewSettings(home="grad_norm", x_axis="epoch")
    ViewFile(tmp_path, "first.zarr").save("epochs", over_epochs)
    found = ViewFile(tmp_path, "second.zarr").view("epochs")
    assert found == over_epochs
    run = recorded(tmp_path / "second.zarr")
    shown = found.applied(PanelSelection().with_series(("head", "grad_norm")), run)
    frame, _ = Lines().frame(run, shown, 400)
    assert (shown.x_axis, frame["x_axis"]) == ("epoch", "step")
    assert frame["refused"]["epoch"].startswith("epochs are not recorded in ")
    with pytest.raises(ProbeError, match="'x_axis' of a saved view is 'epochs', not"):
        ViewSettings.from_json({"x_axis": "epochs"})


def test_a_view_has_the_chosen_colors_of_the_modules_that_a_run_has(tmp_path: Path) -> None:
    chosen = (("blocks.*", "grad_norm", 9), ("gone", "grad_norm", 2))
    colored = ViewSettings(home="grad_norm", series=GRADIENTS.series, chosen_colors=chosen)
    ViewFile(tmp_path, "first.zarr").save("colored", colored)
    found = ViewFile(tmp_path, "second.zarr").view("colored")
    assert found == colored
    shown = found.applied(PanelSelection(), recorded(tmp_path / "second.zarr"))
    assert [shown.colour(("blocks.0", "grad_norm")), shown.colour(("blocks.1", "grad_norm"))] == [
        9,
        9,
    ]
    assert len(shown.chosen_colors) == 2
    assert ViewSettings.of(shown).chosen_colors == shown.chosen_colors
    plain = ViewSettings(home="grad_norm").applied(shown, recorded(tmp_path / "third.zarr"))
    assert plain.chosen_colors == ()


def test_a_wrong_setting_or_name_says_which(tmp_path: Path) -> None:
    names = "cells, charts, chosen_colors, folds, home"
    with pytest.raises(ProbeError, match=f"no setting 'hom'; allowed: {names}"):
        ViewSettings.from_json({"hom": "grad_norm"})
    with pytest.raises(ProbeError, match="'log_y' of a saved view is 'yes', not"):
        ViewSettings.from_json({"log_y": "yes"})
    file = ViewFile(tmp_path, "first.zarr")
    file.save("gradients", GRADIENTS)
    with pytest.raises(UnknownNameError, match=r"no view 'gradient' in .*close: 'gradients'"):
        file.view("gradient")


def test_a_file_that_is_no_json_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "panel_views.json"
    path.write_text("{")
    with pytest.raises(ProbeError, match=r"panel_views\.json cannot be read"):
        ViewFile(tmp_path, "first.zarr").save("mine", GRADIENTS)
    assert path.read_text() == "{"


def test_a_removed_view_is_shown_by_no_record(tmp_path: Path) -> None:
    file = ViewFile(tmp_path, "first.zarr")
    file.save("gradients", GRADIENTS)
    file.remove("gradients")
    file.remove("gradients")
    assert (file.names, file.last) == ([], "")
    assert [one.name for one in tmp_path.iterdir()] == ["panel_views.json"]


def test_globs_draw_the_modules_that_the_run_has(tmp_path: Path) -> None:
    small = recorded(tmp_path / "small.zarr")
    shown = GRADIENTS.applied(PanelSelection(window=(1, 2)), small)
    lines = [("blocks.0", "grad_norm"), ("blocks.1", "grad_norm"), ("head", "weight_norm")]
    assert (shown.home, [*shown.series]) == ("grad_norm", lines)
    assert (shown.log_y, shown.y_limits, shown.smooth) == (True, (0.001, 10.0), 0.5)
    assert shown.window == (1, 2)
    other = recorded(tmp_path / "large.zarr", n_blocks=3)
    assert len(GRADIENTS.applied(PanelSelection(), other).series) == 4


def test_a_panel_opens_with_the_view_that_its_record_showed_last(tmp_path: Path) -> None:
    run = recorded(tmp_path / "first.zarr")
    file = ViewFile.of(run)
    assert file.path == tmp_path / "panel_views.json"
    file.save("gradients", GRADIENTS)
    looked_at = Panel(run)._session.look()
    assert ("head", "weight_norm") in looked_at.series
    assert looked_at.y_limits == (0.001, 10.0)
    second = recorded(tmp_path / "second.zarr")
    assert Panel(second)._session.look().y_limits is None
    panel = Panel(second)
    panel.show_view("gradients")
    assert panel._session.look().y_limits == (0.001, 10.0)


def test_a_broken_file_is_a_problem_in_the_panel_and_stops_nothing(tmp_path: Path) -> None:
    run = recorded(tmp_path / "first.zarr")
    (tmp_path / "panel_views.json").write_text("[1]x")
    panel = Panel(run)
    assert panel._session.look().home == "grad_norm"


@pytest.mark.slow
def test_one_html_file_shows_a_saved_view(tmp_path: Path) -> None:
    run = recorded(tmp_path / "first.zarr")
    ViewFile.of(run).save("gradients", GRADIENTS)
    ViewFile.of(run).save("weights", ViewSettings(home="weight_norm"))
    sizes = {}
    for view in ("gradients", "weights"):
        sizes[view] = run.to_html(tmp_path / f"{view}.html", view=view).stat().st_size
    assert all(size > 10_000 for size in sizes.values())
    with pytest.raises(UnknownNameError, match="no view 'weight'"):
        run.to_html(tmp_path / "none.html", view="weight")


def test_clicks_save_show_and_remove_a_view(tmp_path: Path) -> None:
    run = recorded(tmp_path / "first.zarr")
    part = SavedViewsPart(run, None)
    chosen = PanelSelection(home="weight_norm", smooth=0.25).with_series(("head", "grad_norm"))
    seen = Seen(head=None, selection=chosen)  # type: ignore[arg-type]
    assert part.state(seen)["rows"] == []

    def click(act: str, name: str) -> list[str]:
        part.hear({"v": 1, "type": "edit_view", "act": act, "name": name})  # type: ignore[typeddict-item]
        return [row["name"] for row in part.state(seen)["rows"]]

    assert click("save", "mine") == ["mine"]
    [row] = part.state(seen)["rows"]
    assert row["shows"]["series"] == [["head", "grad_norm"]]
    assert (row["shows"]["home"], row["shows"]["smooth"]) == ("weight_norm", 0.25)
    ViewFile(tmp_path, "second.zarr").save("theirs", GRADIENTS)
    assert click("show", "theirs") == ["mine", "theirs"]
    assert ViewFile.of(run).last == "theirs"
    assert click("remove", "mine") == ["theirs"]
    (tmp_path / "panel_views.json").write_text("{")
    assert "cannot be read" in part.state(seen)["problem"]
