"""Which scene shows which quantity, and how; quantities without one are shown of the reader."""

from __future__ import annotations

import math

from tools.pictures import dense, reader
from tools.pictures.scene import Scene, Shown

__all__ = ["SCENES", "UNSEEN", "caption", "scene_of"]

EVERY = {"activations": 2, "parameters": 2, "sort": 4, "factorisation": 4, "forward": 10}
READER = "convolution, attention and a linear head on digits"
MOVING = "the head moves most"
CATCH_UP = "the running statistics catch up with those of the batches"
FADING = "the signal fades with depth until the weights have grown"
VANISHING = "gradients vanish towards the input until the weights have grown"
COLLAPSING = "the heads attend to fewer and fewer keys"
OVERFLOW = "numbers overflow at step 6, and are NaN after that"
PER_CHANNEL = "a row of colors per channel"
PER_QUANTILE = "a line per quantile"
FALLING = "in falling order, on a log axis"
EQUAL_BINS = "colors are densities: the share of all values per unit"
BINS = "colors are counts on a log scale, from large negative numbers over zero to large ones"

HEAD, NORMS = Shown(("head",)), Shown(("norm", "layernorm"))
RELUS = Shown(("relu1", "relu2", "relu3"))
LINEARS = Shown(("linear1", "linear2", "linear3"))
WHOLE = Shown(("",))


def _all(names: str, shown: Shown | None = None) -> dict[str, Shown]:
    return dict.fromkeys(names.split(), shown or Shown())


SCENES = {
    "reader": Scene(
        f"{READER}, AdamW, one cycle of the learning rate",
        reader.training(160, lr=5e-3),
        {
            **_all("accuracy logit_logsumexp", HEAD),
            "confidence": Shown(("head",), told="from guessing among ten to near certainty"),
            "ece": Shown(("head",), told="at first its accuracy is higher than its confidence"),
            "prediction_entropy": Shown(
                ("head",), marks={"ln 10": math.log(10)}, told="from guessing to near certainty"
            ),
            "train_eval_gap": Shown(told="it widens once the training set is fitted"),
            "saturated_fraction": Shown(told="more outputs of the tanh reach its bounds"),
            **_all("distance_from_init layer_rotation feature_drift", Shown(told=MOVING)),
            "cka_to_reference": Shown(
                told="the convolution keeps its features, attention does not"
            ),
            **_all("sign_flips sign_flip_count", Shown(told="signs settle while the rate falls")),
            **_all("log_step_size update_norm", Shown(told="steps follow the learning rate")),
            "moment_ratio": Shown(told="gradients agree at first, and are noise at the end"),
            "bn_mean_tid": Shown(marks={"0.5": 0.5}, told=CATCH_UP),
            "bn_var_tid": Shown(told=CATCH_UP),
            **_all("norm_gain_rms norm_bias_rms", NORMS),
            "param_histogram": Shown(
                ("head",), told="bins go from the smallest to the largest weight"
            ),
            "weight_singular_values": Shown(("head",), told=FALLING),
            **_all("input_cov_eigs output_cov_eigs output_grad_cov_eigs", Shown(told=FALLING)),
            "effective_lr_quantiles": Shown(("head",), told=PER_QUANTILE),
            **_all("input_quantiles output_quantiles", Shown(told=PER_QUANTILE)),
            **_all(
                "input_histogram output_histogram weight_histogram grad_histogram "
                "grad_output_histogram",
                Shown(told=EQUAL_BINS),
            ),
            **_all(
                "input_log_histogram output_log_histogram weight_log_histogram grad_log_histogram "
                "grad_output_log_histogram",
                Shown(told=BINS),
            ),
            **_all(
                "input_channel_mean input_channel_std input_channel_rms input_channel_norm "
                "input_channel_abs_max output_channel_mean output_channel_std output_channel_rms "
                "output_channel_norm output_channel_abs_max",
                Shown(told=PER_CHANNEL),
            ),
            "loss_landscape_1d": Shown(("",), told="at three steps; 0 is where the weights are"),
            "loss_landscape_2d": Shown(
                ("",), told="the weights at the last step are in the middle"
            ),
            "lr": Shown(("",), told="rising for a third of the steps, then falling"),
            "momentum": Shown(("",), told="falling while the learning rate rises, and back"),
            "update_ratio": Shown(
                marks={"rule of thumb": 1e-3}, told="relative steps follow the learning rate"
            ),
            "grad_cosine": Shown(marks={"at a right angle": 0.0}),
            "weight_decay": Shown(
                ("conv", "norm"), told="matrices decay more and more, vectors never"
            ),
            "clip_coefficient": Shown(told="norms above 1 are clipped to 1"),
        },
        every={**EVERY, "backward": 20},
    ),
    "attention": Scene(
        f"{READER}; the learning rate is far too high for attention",
        reader.training(120, lr=0.06),
        {
            **_all(
                "attn_entropy attn_entropy_min",
                Shown(marks={"ln 16, even": math.log(16)}, told=COLLAPSING),
            ),
            **_all("attn_max_logit qk_norm_product", Shown(log=False)),
            **_all("attn_narrowest_head attn_max_logit_head", Shown(log=False)),
            **_all("attn_entropy_share attn_head_entropy", Shown(told=COLLAPSING)),
            "attn_sink_share": Shown(),
            **_all("attn_head_max_logit attn_head_sink_share"),
        },
        every={"forward": 3},
    ),
    "dying": Scene(
        "a dense network with ReLUs, SGD with momentum",
        dense.dying,
        {
            **_all("dead_fraction dormant_fraction zero_fraction", RELUS),
            **_all("grad_zero_fraction linear_dead_fraction silent_input_fraction", LINEARS),
        },
        every={"activations": 2, "parameters": 2},
        events={"learning rate x 40": 50},
    ),
    "edge": Scene(
        "gradient descent with learning rate 0.4 on all data at once",
        dense.edge,
        {
            "sharpness": Shown(
                ("",), marks={"2 / lr": 2 / dense.EDGE_RATE}, told="it rises to 2 / lr and stays"
            ),
            "alpha_step": Shown(
                ("",), marks={"minimum of the parabola": 0.0}, told="one point every 40 updates"
            ),
            "hessian_trace": Shown(("",)),
            "sam_sharpness": Shown(("",)),
            "path_shares": Shown(("",)),
            "loss_landscape_path": Shown(
                ("",), told="the model is in the middle, and started at the upper right"
            ),
        },
        every={"backward": 40},
    ),
    "half": Scene(
        "a deep network in float16 autocast with a gradient scaler that starts too high",
        dense.half,
        {
            "amp_scale": Shown(
                log=True, told="halved by an overflow, doubled after 12 steps without one"
            ),
            **_all("amp_skipped range_headroom_bits output_grad_headroom_bits underflow_fraction"),
            **_all("fp8_error fp8_underflow_fraction"),
            "output_dtype": Shown(told="autocast makes float16 of every layer, which has 11 bits"),
        },
    ),
    "diverging": Scene(
        "least squares with two linear layers, the learning rate above the stability limit",
        dense.diverging,
        {
            **_all(
                "nonfinite_fraction input_nonfinite_fraction weight_nonfinite_fraction "
                "grad_nonfinite_fraction output_grad_nonfinite_fraction "
                "n_weight_nan n_weight_posinf n_weight_neginf",
                Shown(told=OVERFLOW),
            ),
        },
        ("linear1", "linear2"),
    ),
    "deep": Scene(
        "eight tanh layers whose initial weights are too small",
        dense.deep,
        {
            **_all("input_norm input_std input_rms", Shown(told=FADING)),
            **_all("output_norm output_std output_rms", Shown(told=FADING)),
            **_all("input_grad_norm output_grad_norm output_grad_rms", Shown(told=VANISHING)),
            **_all("grad_norm grad_rms weight_grad_norm", Shown(told=VANISHING)),
            "grad_below_eps_fraction": Shown(told="Adam's eps is 1e-5"),
            **_all("output_grad_underflow_fraction grad_underflow_fraction"),
            "output_grad_fp8_error": Shown(told="small gradients are scaled first"),
            "output_grad_fp8_underflow_fraction": Shown(told="the range of 5 bits is enough"),
            "grad_depth_slope": Shown(("",), marks={"healthy": 0.0}, told=VANISHING),
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
        "a dense network with BatchNorm between linear1 and linear2, batches of 512",
        dense.classes,
        {
            "neural_collapse_nc1": Shown(("linear1", "linear2", "linear3")),
            "linear_probe_accuracy": Shown(
                ("linear1", "linear2", "linear3"),
                told="deeper layers separate the classes best",
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
            "gradient_noise_scale": Shown(
                log=True, told="noise grows relative to the gradient as it learns"
            ),
            "gsnr": Shown(log=True),
            **_all("norm_test inner_product_test orthogonality_test", Shown(marks={"1": 1.0})),
            "stiffness": Shown(marks={"0": 0.0}),
            "early_stopping_evidence": Shown(marks={"nothing but noise": 0.0}),
        },
        every={"parameters": 2},
    ),
    "experts": Scene(
        "a mixture of eight experts, with a balance term in the loss from step 50 on",
        dense.experts,
        {
            **_all(
                "router_load_entropy router_load router_max_violation dead_expert_fraction "
                "update_rms update_orthogonality",
                Shown(("router",)),
            )
        },
        every={"activations": 2},
        events={"balance in the loss": 50},
    ),
    "slow_loader": Scene(
        "a dense network; at the end the loader takes 50 ms per batch",
        dense.slow_loader,
        {
            **_all("samples_per_second step_time peak_memory device_memory device_utilization"),
            "data_wait_share": Shown(log=False, marks={"0.3": 0.3}),
            "n_sampled": Shown(("linear1", "linear3")),
            "n_output_rows": Shown(("linear1",)),
        },
        every={"sort": 4, "factorisation": 4, "scalar": 4},
        events={"batch 32 to 256": 50, "slow loader": 100},
    ),
    "sentences": Scene(
        "sentences of 3 to 24 words, of which at most 16 are kept; at the end sorted by length",
        dense.sentences,
        {
            "padding_share": Shown(told="rows of like length need less padding"),
            "truncated_share": Shown(told="if sorted, only the last batches have long sentences"),
        },
        events={"sorted": 60},
    ),
    "spoilt_data": Scene(
        "the last 20 of 960 labels are wrong; for two epochs the data are sorted by class, at "
        "the end each image occurs twice",
        dense.spoilt_data,
        {
            "label_entropy": Shown(
                marks={"ln 10": math.log(10)}, told="if sorted, a batch has one or two classes"
            ),
            "loss_spike_score": Shown(marks={"6": 6.0}),
            "label_share": Shown(told="all of them count"),
            "duplicate_fraction": WHOLE,
            "batch_seen_before": Shown(("",), told="from the second epoch on every image is known"),
            "forgetting_events": Shown(
                ("linear2",), told="if sorted, a class is forgotten while another is trained"
            ),
            "el2n": Shown(("linear2",)),
            "sample_loss_quantiles": Shown(told=PER_QUANTILE),
            "worst_sample_losses": Shown(told="a line for each of the eight"),
            "loss_by_bucket": Shown(told="a bucket is a class; if sorted, some have no sample"),
            "samples_by_bucket": Shown(told="a bucket is a class; if sorted, some have no sample"),
            "worst_samples": Shown(told="the wrong labels, from 940 on, recur"),
        },
        events={"sorted": 90, "shuffled": 120, "twice": 150},
    ),
}


UNSEEN = {"device_power": "a CUDA device"}
"""Quantities that no scene can show, each with what it needs."""


def scene_of(quantity: str) -> str:
    """The name of the scene that shows it."""
    return next((name for name, scene in SCENES.items() if quantity in scene.shown), "reader")


def caption(quantity: str) -> str:
    """What its picture shows, and of which training it is."""
    scene = SCENES[scene_of(quantity)]
    parts = filter(None, (scene.shown.get(quantity, Shown()).told, scene.about))
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in parts)
