"""Write docs/quantities.md and a page for each family, from the docstrings of the quantities.

Run it from the checkout: ``python -m tools.quantity_pages``. The pictures beside them are made by
``python -m tools.quantity_pictures``.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path

from notebook_probe.quantities import Quantity
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.costs import measured_costs
from notebook_probe.quantities.reduce.features import given_by
from notebook_probe.quantities.table import built_in
from notebook_probe.run.attach.presets import presets
from tools.pictures.scenes import UNSEEN, caption
from tools.quantity_costs import costs_page

ROOT = Path(__file__).parent.parent
INDEX = Path("docs/quantities.md")
FOLDER = Path("docs/quantities")
PICTURES = FOLDER / "pictures"
COSTS = FOLDER / "costs.md"

HEAD = """# Quantities

<!-- written by `python -m tools.quantity_pages`; change the docstrings instead -->

These quantities of a network can be measured while it trains. `nbp.list_quantities()` shows the
same as a table that you can search; `run.attach("layer3.*", "effective_rank", "every(50)")` starts
to measure one.

Values that several quantities of a module share in one step, such as a covariance, are computed
once. The cost class says what is done with the tensors at a due step:

| class | work |
|---|---|
| `scalar` | none: the number exists already |
| `parameters` | one pass over weights, gradients or optimizer state |
| `activations` | one pass over the module's inputs or outputs |
| `sort` | a histogram or quantiles |
| `factorisation` | an eigenvalue problem |
| `forward` | the model is run again |
| `backward` | gradients or Hessian products |

[The cost of each](quantities/costs.md) was measured on three models, of presets on five.

A quantity has a picture from a short training of a small network on handwritten digits; the line
below it says what happens. Dashed lines are reference values, dotted ones are events.
`python -m tools.quantity_pictures` draws them again.

Find a quantity [by the question it answers](#by-question), [by family](#by-family), or
[by its name in another system](#by-another-name).
"""

MINDSPORE = "https://www.mindspore.cn/docs/en/stable/api_python/mindspore"
SYSTEMS = {
    "Cockpit": "https://arxiv.org/abs/2102.06604",
    "Delve": "https://github.com/delve-team/delve",
    "Glorot & Bengio 2010": "https://proceedings.mlr.press/v9/glorot10a.html",
    "GoMLX": "https://github.com/gomlx/gomlx",
    "Hutchinson 1990": "https://doi.org/10.1080/03610919008812866",
    "SummaryCollector": f"{MINDSPORE}/mindspore.SummaryCollector.html",
    "Taiyi": "https://github.com/DLCV-BUAA/Taiyi",
}
"""Where the sources that are no addresses are found."""

BEGIN = {
    questions.SIGNAL: "grad_depth_slope grad_norm output_std nonfinite_fraction",
    questions.DEAD: "dead_fraction dormant_fraction zero_fraction",
    questions.BATCHNORM: "bn_mean_tid bn_var_tid train_eval_gap",
    questions.RATE: "update_ratio sharpness alpha_step grad_cosine loss_spike_score",
    questions.LEARNING: "update_ratio layer_rotation distance_from_init feature_drift",
    questions.SPIKE: "loss_spike_score adam_update_rms logit_logsumexp grad_norm worst_samples",
    questions.RANGE: "range_headroom_bits output_abs_max underflow_fraction nonfinite_fraction",
    questions.ATTENTION: "attn_entropy attn_entropy_share attn_max_logit attn_sink_share",
    questions.COLLAPSE: "effective_rank participation_ratio saturation cka_to_reference",
    questions.NOISE: "gradient_noise_scale gsnr norm_test stiffness",
    questions.DATA: "label_entropy duplicate_fraction sample_loss_quantiles forgetting_events",
    questions.SPEED: "step_time samples_per_second peak_memory data_wait_share",
    questions.PROGRESS: "loss_ema train_eval_gap sam_sharpness hessian_trace loss_landscape_2d",
}
"""The quantities that tell most, for each question, of whatever families."""

TITLES = {"batchnorm": "BatchNorm", "rms_and_maxima": "RMS and maxima"}
"""Families whose title is not their name with a capital."""

FEW = 20
"""A preset of more quantities is not written out."""


def main() -> None:
    """Write every page, and remove those of families that are gone."""
    written = pages()
    for old in (ROOT / FOLDER).glob("*.md"):
        if old.relative_to(ROOT) not in written:
            old.unlink()
    for path, text in written.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, "utf-8")
    print(f"{len(written)} pages of {len(built_in())} quantities")


def pages() -> dict[Path, str]:
    """The text of each page, by its path in the checkout."""
    families = _by(lambda quantity: quantity.family)
    return {
        INDEX: _index(),
        COSTS: costs_page(measured_costs(), presets, _sorted(), lambda each: _link(each, COSTS)),
        **{_page(name): _family(name, members) for name, members in families.items()},
    }


def _index() -> str:
    asked = _by(lambda quantity: quantity.question)
    known = [text for name, text in vars(questions).items() if name in questions.__all__]
    lines = [HEAD, "## By question", ""]
    for question in filter(asked.__contains__, known):
        lines += [f"### {question}", "", f"Begin with {_begin(question)}.", ""]
        lines += ["| quantity | meaning | cost |", "|---|---|---|"]
        lines += [_row(quantity) for quantity in _by_name(asked[question])] + [""]
    lines += ["## By family", "", *_families(), "", "## By another name", "", *_aliases(), ""]
    lines += [
        "## Presets",
        "",
        "Use them in `nbp.watch(model, probes=...)`, alone or several in a list.",
        "`nbp.list_presets()` shows what each measures, where, when and",
        "[at what cost](quantities/costs.md).",
        "",
    ]
    lines += map(_preset, presets)
    return "\n".join(lines) + "\n"


def _begin(question: str) -> str:
    known = {quantity.name: quantity for quantity in built_in()}
    return ", ".join(_link(known[name], INDEX) for name in BEGIN[question].split())


def _families() -> list[str]:
    """A line for each family: its page, what it is about, its quantities."""
    found = []
    for name, members in _by(lambda quantity: quantity.family).items():
        about, _, _ = _introduction(members).partition("\n")
        links = ", ".join(_link(quantity, INDEX) for quantity in _by_name(members))
        found.append(
            f"* [{_title(name)}]({FOLDER.name}/{name}.md). {_linked(about, INDEX)} {links}."
        )
    return found


def _aliases() -> list[str]:
    """A table of the names in other systems, and under which others search."""
    rows = sorted((alias, quantity) for quantity in built_in() for alias in quantity.aliases)
    return [
        "You can use these names for a quantity everywhere; the record has the name on the right.",
        "",
        "| another system | here | source |",
        "|---|---|---|",
        *(f"| `{alias}` | {_link(one, INDEX)} | {_source(one.source)} |" for alias, one in rows),
    ]


def _preset(name: str) -> str:
    preset, known = presets[name], {quantity.name: quantity for quantity in built_in()}
    names = dict.fromkeys(each for row in preset.rows for each in row.names)
    links = [_link(known[each], INDEX) for each in names]
    listed = ", ".join(links) if len(links) <= FEW else f"{len(links)} quantities"
    told = filter(None, (preset.about, _cost(name), f"{listed}."))
    return f"* `{name}`: {' '.join(told)}"


def _cost(name: str) -> str:
    cost = measured_costs().of_preset(name)
    return f"Costs: {cost}." if cost else ""


def _row(quantity: Quantity) -> str:
    # Renderers differ on an escaped bar within code within a table.
    meaning = _first_line(quantity).replace("||", "‖").replace("|", "∣")
    return f"| {_link(quantity, INDEX)} | {_linked(meaning, INDEX)} | `{quantity.cost}` |"


def _family(name: str, members: list[Quantity]) -> str:
    page = _page(name)
    sections = [_section(quantity, page) for quantity in _by_name(members)]
    introduction = _linked(_introduction(members), page)
    return f"# {_title(name)}\n\n{introduction}\n\n" + "\n".join(sections)


def _introduction(members: list[Quantity]) -> str:
    return inspect.cleandoc(sys.modules[members[0].function.__module__].__doc__ or "")


def _title(family: str) -> str:
    return TITLES.get(family, family.replace("_", " ").capitalize())


def _by_name(quantities: Iterable[Quantity]) -> list[Quantity]:
    return sorted(quantities, key=lambda quantity: quantity.name)


def _need(need: str) -> str:
    call = given_by(need)
    return f"`{need}`" if call == need else f"`{need}` (`{call}`)"


def _section(quantity: Quantity, page: Path) -> str:
    told, linked = quantity.explained, lambda text: _linked(text, page)
    needs = ", ".join(map(_need, quantity.needs))
    cost = measured_costs().of_quantity(quantity.name)
    facts = [f"needs {needs}", f"units `{quantity.units}`", f"cost `{quantity.cost}`"]
    if quantity.aliases:
        facts.append(f"also called {', '.join(f'`{alias}`' for alias in quantity.aliases)}")
    return "\n".join(
        [
            f"## {quantity.name}",
            "",
            linked(_first_line(quantity)),
            "",
            *_picture(quantity.name),
            f"* **Formula:** `{told.formula}`",
            f"* **Answers:** {quantity.question}",
            f"* **Facts:** {'; '.join(facts)}",
            *([f"* **Cost:** {cost} in which it is due"] if cost else []),
            f"* **Source:** {_source(quantity.source)}",
            "",
            f"**How to read it.** {linked(told.reading)}",
            "",
            f"**Pitfalls.** {linked(told.pitfalls)}",
            "",
        ]
    )


def _picture(name: str) -> list[str]:
    if name in UNSEEN:
        return [f"*There is no picture of it, which needs {UNSEEN[name]}.*", ""]
    return [f"![{name}]({PICTURES.name}/{name}.svg)", "", f"*{caption(name)}*", ""]


def _by(key: Callable[[Quantity], str]) -> dict[str, list[Quantity]]:
    ordered = sorted(built_in(), key=key)
    return {name: list(members) for name, members in groupby(ordered, key)}


def _sorted() -> list[Quantity]:
    return sorted(built_in(), key=lambda quantity: (quantity.family, quantity.name))


def _page(family: str) -> Path:
    return FOLDER / f"{family}.md"


def _link(quantity: Quantity, page: Path) -> str:
    home = _page(quantity.family)
    place = "" if home == page else home.relative_to(page.parent).as_posix()
    return f"[`{quantity.name}`]({place}#{quantity.name})"


def _first_line(quantity: Quantity) -> str:
    return inspect.getdoc(quantity.function).partition("\n")[0]  # type: ignore[union-attr]


def _linked(text: str, page: Path) -> str:
    """A docstring's markup as Markdown's: formulas as code, names of quantities as links."""
    known = {quantity.name: quantity for quantity in built_in()}

    def code(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return _link(known[name], page) if name in known else f"`{name}`"

    return re.sub(r"``(.+?)``|`(\w+)`", code, text, flags=re.DOTALL)


def _source(source: str) -> str:
    linked = re.sub(r"https://\S+?(?=;|\s|$)", lambda url: f"<{url[0]}>", source)
    for name, home in SYSTEMS.items():
        linked = linked.replace(name, f"[{name}]({home})")
    return linked


if __name__ == "__main__":
    main()
