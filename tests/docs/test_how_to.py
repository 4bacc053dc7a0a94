"""The pages of docs/how_to that ask for nothing but torch run, and do what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.running import READERS_OWN, run_page
from tests.run.programs import Programs

AFTER = {
    "compiled": """
assert run.series("head", "output_norm").step.values.tolist()[:3] == [0, 1, 2]
assert run.series("body.0", "output_grad_norm").notnull().all()
assert run.on_compiled == "eager" and run.status().errors == ()
""",
    "functional_activations": """
assert run.series("head", "silent_input_fraction").notnull().all()
assert run.series("", "zeros").size == len(loader)
x = loader[0][0]
torch.testing.assert_close(modular(x), model(x), rtol=0, atol=0)
""",
    "gans": """
assert [alert.rule for alert in run_g.alerts] == ["generator_behind", "one_sided_gan"]
assert run_g.series("", "loss_d").step.values.tolist() == list(range(60))
assert (run_d.series("0", "calls")[1:-1] == 2).all()
assert float(run_d.series("", "discarded_backwards")[1]) == 1.0
""",
    "good_runs": """
[alert] = run.alerts.of("differs_from_reference")
assert (alert.module, alert.quantities, alert.step) == ("body.2", ("weight_norm",), 0)
assert (found.first.module, found.first.quantity) == ("body.2", "weight_norm")
assert [one.module for one in later] == [one.module for one in found]
assert (difference.module, difference.other.operation) == ("body.1", "aten.leaky_relu.default")
""",
    "histogram_over_time": """
assert (counts.sum("linear_bin") == model.head.weight.numel()).all()
assert float(low[0, 0]) < float(high[0, 0]) and float(at_ten.sum()) == 24
""",
    "images_text_parameters": """
assert record.config["widths"] == [8, 8] and record.annotations["purpose"] == "a first try"
assert record.series("", "inputs_image").step.values.tolist() == [0, 10]
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.summary.views.images import pictures
[shown] = pictures(record, PanelSelection())["series"]
assert shown["name"] == "inputs_image" and shown["pixels"].shape == (2, 4, 4, 3)
assert sum(event.kind == "sample" for event in record.events) == 2
""",
    "keep_it_cheap": """
assert few.series("head", "effective_rank").size == len(loader)  # times(20) of twenty
assert few.series("body.0", "grad_norm").step.values.tolist() == [0, 10]
""",
    "measure": """
assert run.series("body.0", "linear_probe_accuracy").step.values.tolist() == [0]
assert run.series("", "label_entropy").size == 20
assert run.series("", "samples_by_bucket").sum("bucket").values.tolist() == [32, 320, 288]
assert run.status().errors == ()
""",
    "own_quantity": """
assert run.series("body.1", "top_share").size == 16 and run.status().errors == ()
assert float(run.series("head", "norm_spread")[-1]) >= 1.0
gained = float(run.series("body.0", "gain")[-1])
assert gained > 0.0
TestMine.cases = {"convolution": TestMine.cases["convolution"]}  # a layer of it gets zeros alone
TestMine().test_no_unusual_number_makes_it_raise()
""",
    "own_rule": """
told = run.alerts.of("outputs_too_large")
assert "outputs_too_large at head and 1 more: outputs have a norm of 123, more than 20" in str(told)
assert again.breakpoints
""",
    "own_view": """
assert chosen.value.startswith("largest at step")
explorer.step = slider.value = 7
assert (explorer.step, slider.value) == (7, 7) and "at step 7:" in chosen.value
assert against_depth(run).axes
""",
    "reading": """
from pathlib import Path
assert run.data.sizes["step"] == record.data.sizes["step"] == len(loader)
assert Path("run.nc").exists() and Path("run.html").stat().st_size > 100_000
assert study.sizes["run"] == 1
""",
    "reinforcement_learning": """
rewards, sure = run.series("", "reward"), run.series("policy", "prediction_entropy")
assert rewards.step.values.tolist() == list(range(40))
assert float(rewards[-5:].mean()) > 2 * float(rewards[:5].mean())
assert float(sure[-1]) < float(sure[0])
""",
    "where_nan_began": """
assert (first.alert.rule, first.modules[0], first.alert.step) == ("nonfinite_update", "body.2", 10)
assert first_step == 10 and "body.2" in bad.module[bad.sel(step=10)].values
assert "body.0" not in bad.module[bad.sel(step=10)].values
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("page", AFTER)
def test_the_code_of_a_page_runs_as_it_is_printed(
    page: str, programs: Programs, tmp_path: Path
) -> None:
    run_page(f"how_to/{page}.md", programs, tmp_path, before=READERS_OWN, after=AFTER[page])
