"""States of the panel that a person may see, each as a function that brings a panel there."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator

from tests.browser import alert_messages as gpt
from tests.browser import (
    compare_messages,
    test_panel_alerts,
    test_panel_batch,
    test_panel_breaks,
    test_panel_examination,
    test_panel_hints,
    test_panel_knobs,
    test_panel_output,
    test_panel_picker,
    test_panel_probe_cost,
    test_panel_rewind,
    test_panel_saved_views,
    test_panel_vectors,
)
from tests.browser.compare_messages import divided, opened
from tests.browser.graph_messages import resnet18, show_graph
from tests.browser.history_messages import history, way
from tests.browser.panel_page import PanelPage, introduce
from tests.browser.test_panel_arranged import ACCURACY, LOSS, NORM, chart, drawn
from tests.browser.test_panel_enlarged import enlarged
from tests.browser.test_panel_formulas import typed
from tests.browser.test_panel_start import begun

__all__ = ["STATES"]


def reached(panel: PanelPage, action: str) -> Locator:
    """A button, unfolded first where the panel is narrow."""
    for folded in ("words", "modules"):
        opener = panel.action(folded)
        if not panel.action(action).is_visible() and opener.is_visible():
            opener.click()
    return panel.action(action)


def alerts_drawer(bare: PanelPage, width: int) -> None:
    gpt.say_all(bare.show(width))
    test_panel_alerts.opened(bare, "attention_logit_growing")


def arranged(bare: PanelPage, width: int) -> None:
    drawn(bare, width, charts=[chart(LOSS), chart(ACCURACY, NORM), chart()])


def attached_list(bare: PanelPage, width: int) -> None:
    panel = test_panel_probe_cost.shown(bare, width)
    reached(panel, "attached").click()


def batch(bare: PanelPage, width: int) -> None:
    panel = test_panel_batch.charted(bare, width)
    panel.say(test_panel_batch.KEPT)
    panel.say(history(50, 100, way=way()))
    test_panel_batch.asked_for(panel)


def breakpoints(bare: PanelPage, width: int) -> None:
    panel = test_panel_breaks.shown(bare, width)
    panel.say(test_panel_breaks.breaks(test_panel_breaks.HIGH, test_panel_breaks.AT))
    reached(panel, "breaks").click()


def chart_options(bare: PanelPage, width: int) -> None:
    arranged(bare, width)
    bare.action("chart-options").first.click()


def compared(bare: PanelPage, width: int) -> None:
    panel = divided(introduce(bare.show(width)))
    panel.action("partings").click()


def costs(bare: PanelPage, width: int) -> None:
    panel = test_panel_probe_cost.shown(bare, width)
    reached(panel, "probes").click()


def empty(bare: PanelPage, width: int) -> None:
    introduce(bare.show(width))


def enlarged_chart(bare: PanelPage, width: int) -> None:
    enlarged(bare, width=width)


def first_minute(bare: PanelPage, width: int) -> None:
    begun(bare.show(width))


def examined(bare: PanelPage, width: int) -> None:
    panel = introduce(bare.show(width))
    panel.say(test_panel_examination.examination(*test_panel_examination.FOUND))
    reached(panel, "examination").click()


def formula(bare: PanelPage, width: int) -> None:
    drawn(bare, width)
    typed(bare, "= mean(gr")


def graph(bare: PanelPage, width: int) -> None:
    show_graph(bare, resnet18(), width)


def group_of_runs(bare: PanelPage, width: int) -> None:
    panel = compare_messages.compared(introduce(bare.show(width)))
    panel.say(*compare_messages.two_beside())


def hints(bare: PanelPage, width: int) -> None:
    begun(bare.show(width)).say(test_panel_hints.hints(*test_panel_hints.NAMES))


def knobs(bare: PanelPage, width: int) -> None:
    of_user = test_panel_knobs.knobs(test_panel_knobs.DROPOUT, test_panel_knobs.rate(0.1, 0.2))
    panel = test_panel_knobs.shown_with(bare, of_user, width)
    reached(panel, "knobs").click()


def line_options(bare: PanelPage, width: int) -> None:
    arranged(bare, width)
    bare.action("line-options").first.click()


def printed_lines(bare: PanelPage, width: int) -> None:
    lines = [f"epoch {k}: loss {1 / (k + 1):.4f}" for k in range(40)]
    panel = introduce(bare.show(width))
    panel.say(test_panel_output.output(*lines, "a line that is long " * 20))
    reached(panel, "output").click()


def pins(bare: PanelPage, width: int) -> None:
    arranged(bare, width)
    for share in (0.3, 0.6):
        box = bare.lines.bounding_box()
        assert box is not None
        bare.lines.click(position={"x": share * box["width"], "y": 60})


def quantity_picker(bare: PanelPage, width: int) -> None:
    panel = test_panel_picker.shown_with(bare, test_panel_picker.own_catalogue(), width)
    panel.root.press("q")


def rewind(bare: PanelPage, width: int) -> None:
    test_panel_rewind.back(test_panel_rewind.shown(bare, width))


def runs_list(bare: PanelPage, width: int) -> None:
    opened(introduce(bare.show(width)))


def saved_views(bare: PanelPage, width: int) -> None:
    panel = introduce(bare.show(width))
    views = {"mine": test_panel_saved_views.GRADIENTS, "weights": test_panel_saved_views.WEIGHTS}
    test_panel_saved_views.say_views(panel, views)
    test_panel_saved_views.opened(panel)


def undone(bare: PanelPage, width: int) -> None:
    arranged(bare, width)
    bare.action("new-chart").click()
    bare.action("undo").click()


def series_colors(bare: PanelPage, width: int) -> None:
    drawn(bare, width)
    bare.root.locator(".nbp-swatch-button").first.click()


def vectors(bare: PanelPage, width: int) -> None:
    histograms = test_panel_vectors.histograms()
    test_panel_vectors.populate(bare.show(width), "histogram", histograms)


STATES: dict[str, Callable[[PanelPage, int], None]] = {
    one.__name__: one
    for one in (
        alerts_drawer,
        arranged,
        attached_list,
        batch,
        breakpoints,
        chart_options,
        compared,
        costs,
        empty,
        enlarged_chart,
        examined,
        first_minute,
        formula,
        graph,
        group_of_runs,
        hints,
        knobs,
        line_options,
        pins,
        printed_lines,
        quantity_picker,
        rewind,
        runs_list,
        saved_views,
        series_colors,
        undone,
        vectors,
    )
}
