"""A GPT of 66 modules whose training goes wrong, as a kernel would tell it to the panel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from notebook_probe.alerts import RULES as BUILT_IN
from notebook_probe.alerts import Alert
from notebook_probe.alerts.alert import where
from notebook_probe.explorer.messages.alert_rows import AlertMessages
from notebook_probe.record.format.source import Event
from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage

STEPS = 412


def gpt_modules(n_blocks: int = 6) -> list[kernel.Module]:
    rows: list[kernel.Module] = [
        ("(root)", "GPT", 312_000, 0, -1),
        ("wte", "Embedding", 4096, 4096, 0),
        ("wpe", "Embedding", 4096, 4096, 0),
        ("drop", "Dropout", 0, 0, 0),
        ("blocks", "ModuleList", 300_000, 0, 0),
    ]
    for block in range(n_blocks):
        above = len(rows)
        rows.append((f"blocks.{block}", "Block", 50_000, 0, 4))
        path = f"blocks.{block}"
        rows.append((f"{path}.ln1", "LayerNorm", 128, 128, above))
        attn = len(rows)
        rows.append((f"{path}.attn", "Attention", 16_600, 0, above))
        rows.append((f"{path}.attn.qkv", "Linear", 12_480, 12_480, attn))
        rows.append((f"{path}.attn.proj", "Linear", 4160, 4160, attn))
        rows.append((f"{path}.ln2", "LayerNorm", 128, 128, above))
        mlp = len(rows)
        rows.append((f"{path}.mlp", "MLP", 33_100, 0, above))
        rows.append((f"{path}.mlp.fc", "Linear", 16_640, 16_640, mlp))
        rows.append((f"{path}.mlp.act", "GELU", 0, 0, mlp))
        rows.append((f"{path}.mlp.proj", "Linear", 16_448, 16_448, mlp))
    rows.append(("ln_f", "LayerNorm", 128, 128, 0))
    rows.append(("head", "Linear", 4160, 4160, 0))
    return rows


MODULES = gpt_modules()
WEIGHTED = [path for path, _, _, own, _ in MODULES if own]
ATTENTION = [path for path, kind, *_ in MODULES if kind == "Attention"]
QUANTITIES: list[Any] = [
    {**row, "name": name, "needs": needs, "summary": summary, "is_vector": False}
    for row in kernel.QUANTITIES[:1]
    for name, needs, summary in (
        ("grad_norm", ["grad"], "Euclidean norm of the gradient of all parameters."),
        ("update_ratio", ["update", "weight"], "Norm of one update over that of the weight."),
        ("output_rms", ["output"], "Root mean square of the output."),
        ("weight_norm", ["weight"], "Euclidean norm of the weight."),
        ("attn_head_max_logit", ["attention"], "Largest score of each head, a vector."),
        ("output_std", ["output"], "Standard deviation of the output."),
    )
]
N_KINDS = 9  # more than there are kinds of places


def alert(step: int, rule: str, modules: list[str], quantities: list[str], says: str) -> Alert:
    """As the rule of this name says it; of what travels the modules are as it comes to them."""
    known = next((one for one in BUILT_IN.values() if one.name == rule), None)
    return Alert(
        rule,
        step,
        f"{where(modules)}: {says}",
        tuple(modules),
        tuple(quantities),
        severity=SEVERITIES.get(rule, "warning"),  # type: ignore[arg-type]
        flow=known.flow if known else None,
        consequence_of=known.consequence_of if known else (),
    )


def remark(step: int, rule: str, modules: list[str], says: str) -> Alert:
    """Return a finding that may be intended."""
    return replace(alert(step, rule, modules, [], says), severity="remark")


SEVERITIES = dict.fromkeys(
    ("attention_logit_large", "loss_spike", "exploding_gradient", "diverging_loss"), "severe"
)
ALERTS = [
    alert(
        290,
        "attention_logit_growing",
        ["blocks.2.attn"],
        ["attn_max_logit"],
        "the largest attention logit is 24.1 and has grown by a factor of 1.2 or more in each of "
        "the last two thirds of 149 rows",
    ),
    alert(
        330,
        "attention_logit_large",
        ["blocks.2.attn", "blocks.3.attn"],
        ["attn_max_logit"],
        "the largest attention logit is 52.4, above 50: the softmax has no gradient there; "
        "normalize queries and keys",
    ),
    alert(
        331,
        "adam_spike_ahead",
        ["wte", *[f"blocks.{k}.attn.qkv" for k in range(5)]],
        ["adam_update_rms"],
        "the gradient is 4.1 times what Adam's second moment expects, and was not before; a loss "
        "spike may follow, which a lower beta2 prevents",
    ),
    alert(
        341,
        "loss_spike",
        ["(root)"],
        ["loss_spike_score"],
        "the loss is 22.4 deviations above its usual value",
    ),
    alert(
        342,
        "exploding_gradient",
        WEIGHTED,
        ["grad_norm"],
        "the gradient's norm is 8.71e+03, 29200 times its usual size; clip it, or lower the "
        "learning rate",
    ),
    alert(
        342,
        "diverging_loss",
        ["(root)"],
        ["loss"],
        "the loss is 27, 16.7 times its usual value, and grows: a lower learning rate, a warmup or "
        "clipped gradients keep it together",
    ),
    alert(
        400,
        "rank_collapse",
        WEIGHTED[6:33],
        ["effective_rank_share"],
        "the outputs use 1.6% of the directions they could, as effective rank",
    ),
]


def rule(name: str, explained_by: list[str], state: str = "on", **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "summary": f"About {name}.",
        "severity": SEVERITIES.get(name, "warning"),
        "explained_by": explained_by,
        "thresholds": {"most": 50.0},
        "rows": 1,
        "steps": 0,
        "state": state,
        **changes,
    }


RULES = [
    rule("attention_logit_large", ["attn_head_max_logit", "weight_norm"]),
    rule(
        "attention_logit_growing", ["attn_head_max_logit"], thresholds={"least": 20, "window": 149}
    ),
    rule("rank_collapse", ["output_std"], thresholds={"least": 0.05}, rows=3),
    rule("exploding_gradient", ["weight_norm"], thresholds={"times": 10, "window": 50}, rows=2),
    rule("dead_units", ["output_std"], "waits for dead_fraction", steps=200),
    rule("mine", [], "off: ValueError: no such axis"),
    *(rule(name, []) for name in ("adam_spike_ahead", "loss_spike", "diverging_loss")),
]


def alerts_message(alerts: list[Alert], before: list[Alert] | None = None) -> Any:
    """What a view is told of alerts; as news, where it knows of others from before."""
    messages = AlertMessages()
    events = [
        Event(one.step, 0, "remark" if one.is_remark else "alert", one.text, one.detail)
        for one in (*(before or []), *alerts)
    ]
    if before is not None:
        messages.message(events[: len(before)])
    return messages.message(events)


def rules_message(rows: list[dict[str, Any]] = RULES, trial: Any = None) -> dict[str, Any]:
    return {"v": 1, "type": "rules", "rules": rows, "trial": trial}


def model_message(live: bool = True) -> Any:
    """Every quantity fits everywhere, those of attention where there is some."""
    message = kernel.model_message(MODULES, live=live, name="gpt-6x64")
    kinds = [2 + (path in ATTENTION) for path, *_ in MODULES]
    rows = []
    for one in QUANTITIES:
        lacks = "" if one["needs"] != ["attention"] else "needs 'attention'"
        rows.append({**one, "misfits": ["", "", lacks, ""]})
    return {**message, "kinds": kinds, "quantities": rows if live else []}


def status_message(**changes: Any) -> Any:
    recorded = {
        "grad_norm": WEIGHTED,
        "update_ratio": WEIGHTED,
        "output_rms": WEIGHTED,
        "weight_norm": WEIGHTED,
        "attn_max_logit": ATTENTION,
        "effective_rank_share": WEIGHTED,
        "loss": ["(root)"],
        "loss_spike_score": ["(root)"],
    }
    return kernel.status_message(
        **{
            "step": STEPS,
            "rate": 16.0,
            "recorded": recorded,
            "attached": [(path, "grad_norm", "every(1)") for path in WEIGHTED],
            "tallies": [(STEPS - 1, 8.4, 0.07) for _ in WEIGHTED],
            "nbytes": 1_400_000,
            "flushed_age_s": 0.3,
            "can": {"pause": "", "attach": "", "edit_rule": ""},
            **changes,
        }
    )


def say_all(panel: PanelPage, live: bool = True, **changes: Any) -> None:
    """The GPT, its rules and alerts, a heat map and two lines."""
    panel.say(model_message(live))
    panel.say(status_message(**changes))
    panel.say(rules_message())
    series = [("(root)", "loss"), ("blocks.2.attn", "attn_max_logit")]
    panel.say(kernel.selection_message(series=series, smooth=0.9))
    panel.draw(*heat())
    panel.draw(*lines())
    panel.say(alerts_message(ALERTS))


def heat(seq: int = 1) -> Any:
    random = np.random.default_rng(1)
    level = random.normal(-1.5, 0.4, (len(WEIGHTED), 1))
    cells = 10 ** (level + random.normal(0, 0.1, (len(WEIGHTED), STEPS)))
    cells[:, 340:] *= 10 ** np.linspace(4, 2, STEPS - 340)
    return kernel.heat_message(cells, WEIGHTED, seq=seq)


def lines(seq: int = 1) -> Any:
    random = np.random.default_rng(2)
    steps = np.arange(STEPS)
    loss = 1.6 + 3 * np.exp(-steps / 50) + random.normal(0, 0.05, STEPS)
    loss[340:] = 10 ** np.minimum(4, 0.3 + (steps[340:] - 340) / 10) * np.exp(
        random.normal(0, 0.2, STEPS - 340)
    )
    every = steps[::10]
    logits = 7 + np.exp((every - 150) / 48)
    logits[34:] = 3e4
    curves = {
        ("(root)", "loss"): (steps, loss),
        ("blocks.2.attn", "attn_max_logit"): (every, logits),
    }
    events = [(0.0, "attach", "grad_norm at 39 modules"), (205.0, "set", "lr 0.001 → 0.003")]
    return kernel.lines_message(curves, seq=seq, smooth=0.9, events=events)
