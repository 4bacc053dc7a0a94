"""Which scene shows which quantity, and how; quantities without one are shown of the reader."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tools.pictures import dense, reader
from tools.pictures.scene import Scene, Shown

__all__ = ["SCENES", "caption", "scene_of"]

EVERY = {"activations": 2, "parameters": 2, "sort": 4, "factorisation": 4, "forward": 10}
READER = "a small network learns handwritten digits: convolution, BatchNorm, attention, linear head"
HEAD, NORMS = Shown(("head",)), Shown(("norm", "layernorm"))
RELUS = Shown(("relu1", "relu2", "relu3"))
WHOLE = Shown(("",))


def _all(names: str, shown: Shown | None = None) -> dict[str, Shown]:
    return dict.fromkeys(names.split(), shown or Shown())


SCENES = {
    "reader": Scene(
        f"{READER}; AdamW, one cycle of the learning rate",
        reader.training(160, lr=5e-3),
        {
            **_all("accuracy ece confidence logit_logsumexp", HEAD),
            "prediction_entropy": Shown(("head",), marks={"ln 10": math.log(10)}),
            "bn_mean_tid": Shown(marks={"0.5": 0.5}),
            **_all("norm_gain_rms norm_bias_rms", NORMS),
            **_all("param_histogram weight_singular_values effective_lr_quantiles", HEAD),
            **_all("lr momentum", WHOLE),
            "update_ratio": Shown(marks={"rule of thumb": 1e-3}),
            "grad_cosine": Shown(marks={"at a right angle": 0.0}),
            "weight_decay": Shown(
                ("conv", "norm"), told="matrices decay more and more, vectors never"
            ),
            "clip_coefficient": Shown(told="norms above 1 are clipped to 1"),
        },
        every={**EVERY, "backward": 40},
    ),
    "attention": Scene(
        f"{READER}; the learning rate is far too high for attention",
        reader.training(120, lr=0.06),
        {
            **_all("attn_entropy attn_entropy_min", Shown(marks={"ln 16, even": math.log(16)})),
            "attn_max_logit": Shown(log=False),
            **_all("attn_entropy_share attn_sink_share"),
            **_all("attn_head_entropy attn_head_max_logit attn_head_sink_share"),
        },
        every={"forward": 3},
    ),
    "dying": Scene(
        "a dense network with ReLUs, SGD with momentum",
        dense.dying,
        {
            **_all("dead_fraction dormant_fraction zero_fraction", RELUS),
            "grad_zero_fraction": Shown(("linear1", "linear2", "linear3")),
        },
        every={"activations": 2, "parameters": 2},
        events={"learning rate x 40": 50},
    ),
    "edge": Scene(
        "gradient descent with learning rate 0.4 on all data at once",
        dense.edge,
        {
            "sharpness": Shown(("",), marks={"2 / lr": 2 / dense.EDGE_RATE}),
            "alpha_step": Shown(("",), marks={"minimum of the parabola": 0.0}),
            "hessian_trace": Shown(("",)),
            "sam_sharpness": Shown(("",)),
        },
        every={"backward": 40},
    ),
    "half": Scene(
        "a deep network in float16 autocast with a gradient scaler that begins too high",
        dense.half,
        {
            "amp_scale": Shown(log=True),
            **_all("amp_skipped range_headroom_bits output_grad_headroom_bits underflow_fraction"),
        },
    ),
    "diverging": Scene(
        "least squares by two linear layers, the learning rate beyond stability",
        dense.diverging,
        {
            **_all("nonfinite_fraction input_nonfinite_fraction weight_nonfinite_fraction"),
            **_all("grad_nonfinite_fraction output_grad_nonfinite_fraction"),
            **_all("n_weight_nan n_weight_posinf n_weight_neginf"),
        },
        ("linear1", "linear2"),
    ),
    "deep": Scene(
        "eight tanh layers whose first weights are too small",
        dense.deep,
        {
            **_all("input_norm input_std input_rms input_grad_norm output_grad_norm"),
            **_all("output_norm output_std output_rms output_grad_rms grad_norm grad_rms"),
            **_all("grad_below_eps_fraction weight_grad_norm"),
            **_all("output_grad_underflow_fraction grad_underflow_fraction"),
            "grad_depth_slope": Shown(("",), marks={"healthy": 0.0}),
        },
        ("linear1", "linear4", "linear8"),
        every={"activations": 2, "parameters": 2},
    ),
    "residual": Scene(
        "four residual blocks between images and head",
        dense.residual,
        {
            "residual_ratio": Shown(("blocks.0.branch", "blocks.3.branch")),
            "residual_change": Shown(("blocks.0", "blocks.3")),
        },
        every={"activations": 2},
    ),
    "classes": Scene(
        "a dense network with BatchNorm behind the first layer, batches of 512",
        dense.classes,
        {
            **_all(
                "neural_collapse_nc1 linear_probe_accuracy",
                Shown(("linear1", "linear2", "linear3")),
            ),
            **_all("effective_rank effective_rank_share participation_ratio saturation"),
            **_all("sample_effective_rank input_cov_condition input_cov_condition_100"),
            **_all("input_cov_condition_20 input_cov_condition_50 input_cov_condition_80"),
            **_all("input_cov_max_eig input_cov_stable_rank"),
        },
        ("linear1", "linear2", "linear4"),
        every={"factorisation": 3},
    ),
    "micro_batches": Scene(
        "steps of eight micro-batches of 16 images",
        dense.micro_batches,
        {
            **_all("gradient_noise_scale gsnr", Shown(log=True)),
            **_all("norm_test inner_product_test orthogonality_test", Shown(marks={"1": 1.0})),
            "stiffness": Shown(marks={"0": 0.0}),
            "early_stopping_evidence": Shown(marks={"nothing but noise": 0.0}),
        },
        every={"parameters": 2},
    ),
    "experts": Scene(
        "a mixture of eight experts, whose loss asks for balance from step 50 on",
        dense.experts,
        {"router_load_entropy": Shown(("router",))},
        every={"activations": 2},
        events={"balance in the loss": 50},
    ),
    "slow_loader": Scene(
        "a dense network; at the end the loader takes 50 ms for a batch",
        dense.slow_loader,
        {
            **_all("samples_per_second step_time data_wait_share peak_memory"),
            "n_sampled": Shown(("linear1", "linear3")),
            "n_output_rows": Shown(("linear1",)),
        },
        every={"sort": 4, "factorisation": 4, "scalar": 4},
        events={"batch 32 to 256": 50, "slow loader": 100},
    ),
    "spoilt_data": Scene(
        "the last 20 of 960 labels are wrong; for two epochs the data are sorted by class, in "
        "the end each image is there twice",
        dense.spoilt_data,
        {
            "label_entropy": Shown(marks={"ln 10": math.log(10)}),
            "loss_spike_score": Shown(marks={"6": 6.0}),
            "duplicate_fraction": WHOLE,
            **_all("forgetting_events el2n", Shown(("linear2",))),
            **_all("sample_loss_quantiles worst_samples worst_sample_losses"),
        },
        events={"sorted": 90, "shuffled": 120, "twice": 150},
    ),
}


def scene_of(quantity: str) -> str:
    """The name of the scene that shows it."""
    return next((name for name, scene in SCENES.items() if quantity in scene.shown), "reader")


def caption(quantity: str) -> str:
    """What its picture shows, in a sentence."""
    scene = SCENES[scene_of(quantity)]
    parts: Iterable[str] = (scene.about, scene.shown.get(quantity, Shown()).told)
    text = "; ".join(filter(None, parts))
    return f"{text[0].upper()}{text[1:]}."
