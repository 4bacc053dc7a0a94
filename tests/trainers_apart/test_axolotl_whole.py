"""A whole training by ``axolotl train``, of a tiny Llama on a CPU, with the plugin and without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import notebook_probe as nbp
from tests.libraries.recorded_scalars import nearly, scalars

transformers = pytest.importorskip("transformers")  # which axolotl requires
tokenizers = pytest.importorskip("tokenizers")

pytestmark = [pytest.mark.libraries, pytest.mark.timeout(600)]

PLUGIN = "notebook_probe.train.frameworks.axolotl.WatchPlugin"
N_STEPS = 6
CONFIG: dict[str, Any] = {
    "base_model": "./tiny",
    "datasets": [{"path": "./data.jsonl", "ds_type": "json", "type": "completion"}],
    "dataset_prepared_path": "./prepared",
    "sequence_len": 64,
    "micro_batch_size": 2,
    "gradient_accumulation_steps": 2,
    "num_epochs": 1,
    "max_steps": N_STEPS,
    "save_steps": N_STEPS,
    "learning_rate": 0.01,
    "optimizer": "adamw_torch",
    "lr_scheduler": "constant",
    "logging_steps": 1,
    "val_set_size": 0,
    "seed": 0,
    **dict.fromkeys(["sample_packing", "bf16", "fp16", "tf32", "flash_attention"], False),
}
TEXTS = [f"sample {n} has the words one two three and the number {n * 7 % 13}" for n in range(64)]
SPECIAL = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
OFFLINE = {"HF_HUB_OFFLINE": "1", "AXOLOTL_DO_NOT_TRACK": "1", "DO_NOT_TRACK": "1"}


def make_model_and_data(folder: Path) -> None:
    """A Llama with random weights, a tokenizer that knows the words of the texts, and these."""
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    trainer = tokenizers.trainers.WordLevelTrainer(special_tokens=[*SPECIAL.values()])
    words.train_from_iterator(TEXTS, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, **SPECIAL)
    tokenizer.save_pretrained(folder / "tiny")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder / "tiny")
    lines = [json.dumps({"text": text}) + "\n" for text in TEXTS]
    (folder / "data.jsonl").write_text("".join(lines))


def train(folder: Path, name: str, **settings: Any) -> Path:
    """Run ``axolotl train`` on a file of settings, JSON being YAML, and return its output."""
    file = folder / f"{name}.yml"
    file.write_text(json.dumps({**CONFIG, "output_dir": f"./{name}", **settings}))
    program = Path(sys.executable).with_name("axolotl")
    command = [str(program), "train", file.name, "--launcher", "python"]
    environment = {**os.environ, **OFFLINE}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / name


def logged(output: Path, name: str) -> dict[int, float]:
    """Step -> value, as the Trainer's own file has it, whose steps count from 1."""
    state = json.loads((output / f"checkpoint-{N_STEPS}" / "trainer_state.json").read_text())
    return {one["step"] - 1: one[name] for one in state["log_history"] if name in one}


def test_a_training_by_axolotl_is_recorded_and_its_weights_are_those_without_the_plugin(
    tmp_path: Path,
) -> None:
    make_model_and_data(tmp_path)
    alone = train(tmp_path, "alone")
    watched = train(tmp_path, "watched", plugins=[PLUGIN])

    weights = "model.safetensors"
    assert (watched / weights).read_bytes() == (alone / weights).read_bytes()
    assert logged(watched, "loss") == logged(alone, "loss")
    [store] = (tmp_path / "runs").iterdir()
    run = nbp.open_run(store)
    assert run.finished
    assert run.modules[0].class_name == "LlamaForCausalLM"
    assert [*scalars(run, "loss")] == [*range(N_STEPS)]
    assert scalars(run, "loss") == nearly(logged(alone, "loss"))
    norms = run.series("model.layers.1.mlp.down_proj", "grad_norm")
    assert norms.step.values.tolist() == [*range(N_STEPS)]
    assert np.all(norms.values > 0)
    assert run.config["max_steps"] == N_STEPS
    told = run.config["axolotl"]
    assert (told["base_model"], told["plugins"]) == ("./tiny", [PLUGIN])
