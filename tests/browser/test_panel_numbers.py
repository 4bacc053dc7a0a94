"""The panel's arithmetic against oracles: formats, axes, averages, labels, search, colours."""

from __future__ import annotations

import fnmatch
from itertools import pairwise

import matplotlib
import numpy as np
import pytest

from tests.browser.panel_messages import DIGITS, lines_message
from tests.browser.panel_page import PanelPage
from tests.browser.panel_parts import PanelParts

THIN = "\u202f"


def test_numbers_have_three_significant_digits_and_thin_spaces(parts: PanelParts) -> None:
    expected = {
        0.2134: "0.213",
        0.00934: "0.00934",
        18496: f"18{THIN}496",
        87.4: "87.4",
        100: "100",
        -0.5: "−0.5",
        1.234e-7: "1.23e−7",
        2.5e9: "2.5e9",
        0: "0",
    }
    assert {value: parts.call("significant", value) for value in expected} == expected
    assert parts.evaluate("parts.significant(NaN)") == "NaN"
    assert parts.evaluate("parts.significant(-Infinity)") == "−∞"
    assert parts.call("grouped", 1240) == f"1{THIN}240"
    assert parts.call("counted", 18496) == f"18.5{THIN}k"
    assert parts.call("counted", 4160) == f"4{THIN}160"
    assert parts.call("bytes", 3_200_000) == f"3.2{THIN}MB"
    assert parts.call("microseconds", 9.21) == f"9.2{THIN}µs"
    assert parts.call("exact", 0.5, "nat") == f"0.5{THIN}nat"


def test_a_line_and_its_average_are_placed_on_the_same_axes(parts: PanelParts) -> None:
    message, buffers = lines_message(
        {("a", "norm"): ([100, 101, 102], [1.0, 100.0, 0.0])}, x0=100.0, smooth=0.5
    )
    [one] = parts.evaluate(
        """([message, floats]) => {
          const bytes = (numbers) => Float32Array.from(numbers).buffer;
          const frame = parts.decodeLines(message, [new DataView(bytes(floats))]);
          const plain = ({ u, v }) => [[...u], [...v].map(String)];
          return parts.prepareLines(frame, { log_x: false, log_y: true })
            .map((series) => [plain(series), plain(series.average), series.unplaced]); }""",
        [message, np.frombuffer(buffers[0], "<f4").tolist()],
    )
    assert one == [[[100, 101, 102], ["0", "2", "-Infinity"]], [[100, 102], ["0", "NaN"]], 1]


def test_the_slider_goes_from_no_average_to_one_of_a_thousand_values(parts: PanelParts) -> None:
    weights = [parts.call("weightAt", place / 10) for place in range(31)]
    assert weights[0] == 0
    assert [weights[place] for place in (10, 20, 30)] == [0.9, 0.99, 0.999]
    assert all(low < high for low, high in pairwise(weights))


def test_it_is_said_which_average_is_drawn_until_it_is_the_chosen_one(parts: PanelParts) -> None:
    def said(drawn: float, averaged: float, chosen: float) -> str:
        lines = {"smooth": drawn, "averaged": averaged}
        return str(parts.call("averageText", {"lines": lines, "selection": {"smooth": chosen}}))

    assert said(0.9, 1.0, 0.9) == said(0.0, 1.0, 0.0) == said(0.0, 1.0, 0.9) == ""
    assert said(0.9, 0.437, 0.9) == "average: 43 % done"
    assert said(0.9, 1.0, 0.99) == "still the average of weight 0.9"


def test_linear_axes_end_at_whole_ticks(parts: PanelParts) -> None:
    axis = parts.call("linearTicks", 0.13, 0.87, 5)
    assert (axis["low"], axis["high"]) == pytest.approx((0.0, 1.0))
    assert [tick["label"] for tick in axis["ticks"]] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    constant = parts.call("linearTicks", 3.0, 3.0, 5)
    assert constant["low"] < 3 < constant["high"]


def test_log_axes_end_at_one_two_or_five_and_label_the_decades(parts: PanelParts) -> None:
    axis = parts.call("logTicks", 0.00034, 0.71, 5)
    assert (axis["low"], axis["high"]) == pytest.approx((2e-4, 1.0))
    assert [tick["label"] for tick in axis["ticks"]] == ["0.001", "0.01", "0.1", "1"]
    narrow = parts.call("logTicks", 0.3, 0.4, 5)
    assert [tick["label"] for tick in narrow["ticks"]] == [
        "0.30",
        "0.32",
        "0.34",
        "0.36",
        "0.38",
        "0.40",
    ]


def test_a_scale_and_its_inverse_agree(parts: PanelParts) -> None:
    for log in ("true", "false"):
        back = parts.evaluate(
            f"""() => {{ const s = parts.valueScale(0.01, 70, {log}, 200, 10, 4);
            return [0.02, 1, 66].map((v) => s.value(s.place(v))); }}"""
        )
        assert back == pytest.approx([0.02, 1, 66])


def test_the_step_axis_grows_in_quarter_ticks_and_is_exact_when_zoomed(parts: PanelParts) -> None:
    ends = [
        parts.evaluate(f"parts.stepScale(0, {high}, {zoomed}, false, 0, 100).high")
        for high, zoomed in [(1201, "false"), (1240, "false"), (1250, "false"), (1240, "true")]
    ]
    assert ends == [1250, 1250, 1250, 1240]


def test_labels_keep_their_order_and_their_distance(parts: PanelParts) -> None:
    wanted = [50.0, 52.0, 51.0, 199.0, 198.0]
    placed = np.array(parts.call("spread", wanted, 14, 0, 200))
    assert np.diff(np.sort(placed)).min() >= 14 - 1e-9
    assert placed.max() <= 200
    assert list(np.argsort(placed)) == list(np.argsort(wanted))
    assert parts.call("spread", [20.0, 80.0], 14, 0, 200) == [20, 80]


def test_a_long_name_keeps_its_numbers_and_its_end(parts: PanelParts) -> None:
    name = "encoder.layers.10.self_attn.out_proj · grad_norm"

    def short(letters: int) -> str:
        script = "([name, n]) => parts.shortName(name, (text) => text.length <= n)"
        found: str = parts.evaluate(script, [name, letters])
        return found

    assert short(60) == name
    assert short(42) == "e.layers.10.self_attn.out_proj · grad_norm"
    assert short(34) == "e.l.10.s.out_proj · grad_norm"
    assert short(24) == "e.l.10.s.out_proj · gra…"
    assert parts.evaluate("parts.shortName('a.out_proj', (t) => t.length < 6)") == "…proj"
    numbered = parts.evaluate("parts.shortName('layer3.1.conv2', (t) => t.length < 12)")
    assert numbered == "l3.1.conv2"
    deep = "blocks.7.a_very_long_name_of_a_projection"
    shown = parts.evaluate("(name) => parts.shortName(name, (t) => t.length < 22)", deep)
    assert shown == "b.7.…_of_a_projection"


def test_a_search_is_a_glob_else_a_class_else_a_part_of_a_name(parts: PanelParts) -> None:
    paths = [path for path, *_ in DIGITS]

    def search(query: str) -> list[str]:
        script = """([model, query]) => parts.searchModules(
          parts.indexModules(model).modules, query).map((row) => row.path)"""
        model = {"modules": DIGITS, "entries": [], "kinds": []}
        found: list[str] = parts.evaluate(script, [model, query])
        return found

    for glob in ("*.conv*", "block.*", "head.fc?", "*[23]", "(root)*"):
        assert search(glob) == fnmatch.filter(paths, glob)
    assert search("Linear") == ["head.fc1", "head.fc2"]
    assert search("CONV2") == ["block.conv2"]
    assert search("norm2d") == [path for path, kind, *_ in DIGITS if kind == "BatchNorm2d"]
    assert search("nothing") == []


def test_the_heat_colours_are_viridis(parts: PanelParts) -> None:
    viridis = matplotlib.colormaps["viridis"]
    for share in np.linspace(0, 1, 23):
        expected = np.array(viridis(share)[:3]) * 255
        assert np.abs(np.array(parts.call("viridis", float(share))) - expected).max() <= 4


def test_series_colours_stand_out_from_any_ground(bare: PanelPage) -> None:
    panel = bare.show()  # a canvas knows what a color of CSS is in numbers
    for ground in ([255, 255, 255], [17, 20, 23], [33, 33, 33], [128, 128, 128]):
        for index in range(9):
            css = panel.call("seriesColour", index, ground, 4.5)
            rgb = panel.call("rgbOf", css)
            assert contrast(rgb, ground) >= (4.5 if ground[0] != 128 else 3.9)


def test_a_raw_line_behind_its_average_is_seen_on_dark_ground_as_on_light(bare: PanelPage) -> None:
    panel = bare.show()
    for ground in ([255, 255, 255], [17, 20, 23], [33, 33, 33]):
        for index in range(3):
            line = np.array(panel.call("rgbOf", panel.call("seriesColour", index, ground)))
            alpha = panel.call("rawAlpha", index, ground)
            raw = line * alpha + np.array(ground) * (1 - alpha)
            assert contrast([*raw], ground) >= 1.8
            assert alpha <= 0.65, "fainter than its average"


LABELS = """(given) => {
  const state = { model: { quantities: [] } };
  const prepared = given.map(([module, quantity]) => ({ module, quantity }));
  const { label } = parts.lineLabels(state, prepared);
  return prepared.flatMap((one) => [label(one), label({ ...one, name: "first", missing: "" })]);
}"""


def test_of_another_run_a_label_says_which_line_it_belongs_to(parts: PanelParts) -> None:
    said = parts.evaluate(LABELS, [["(root)", "loss"], ["blocks.0.attn.qkv", "grad_norm"]])
    assert said == ["loss", "first · loss", "qkv · grad_norm", "first · qkv"]
    assert parts.evaluate(LABELS, [["(root)", "loss"]]) == ["loss", "first"]
    said = parts.evaluate(LABELS, [["head", "grad_norm"], ["head", "update_ratio"]])
    assert said[1::2] == ["first · grad_norm", "first · update_ratio"]


def contrast(one: list[int], other: list[int]) -> float:
    """WCAG 2.2, 1.4.3."""

    def luminance(rgb: list[int]) -> float:
        share = np.array(rgb) / 255
        linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
        return float(linear @ np.array([0.2126, 0.7152, 0.0722]))

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_there_are_no_halves_of_a_step_on_its_axis(parts: PanelParts) -> None:
    labels = parts.evaluate(
        "parts.stepScale(12, 15, true, false, 0, 100).ticks.map((tick) => tick.label)"
    )
    assert labels == ["12", "13", "14", "15"]
    seconds = "{ label: String, least: 1e-9 }"
    time = parts.evaluate(
        f"parts.stepScale(0, 2, true, false, 0, 100, {seconds}).ticks.map((tick) => tick.value)"
    )
    assert time == [0, 0.5, 1, 1.5, 2]
