"""Training programs of other people: where they are, and how each is run small and without data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

__all__ = ["PROGRAMS", "REPLACED", "Program"]

REPLACED = "wikitext-2/train.txt"
"""A large file of a repository in whose place a smaller one is written."""


@dataclass(frozen=True)
class Program:
    """A program, unchanged, with the arguments that make it small.

    Attributes
    ----------
    repository, commit : str
        On GitHub, "owner/name".
    script : str
        Path in the repository. The program runs in its folder, or in ``folder``.
    needs : tuple of str
        Packages beside torch that must be importable.
    by_hand : bool
        It updates its parameters without an optimizer, so that a run records no step of it.
    prepare : callable, optional
        Writes the data that the program would download, given the folder in which it runs.
    mistake : str
        The rule that names a mistake of the program; empty where none is known.
    most_backwards : int
        After which a large one is ended in any case.
    """

    repository: str
    commit: str
    script: str
    arguments: str = ""
    needs: tuple[str, ...] = ()
    folder: str | None = None
    by_hand: bool = False
    prepare: Callable[[Path], None] = field(default=lambda folder: None)
    mistake: str = ""
    most_backwards: int = 10_000

    @property
    def place(self) -> str:
        """The folder in the repository in which it runs."""
        return str(Path(self.script).parent) if self.folder is None else self.folder


def write_digits(folder: Path) -> None:
    """Write the digits where most programs look for MNIST."""
    for place in folder, folder.parent, folder.parents[1]:  # programs disagree
        _write_digits(place / "data")


def write_digits_for_gans(folder: Path) -> None:
    _write_digits(folder.parents[1] / "data" / "mnist")


def _write_digits(data: Path) -> None:
    """Write handwritten digits of 8 x 8 pixels, enlarged, as the four files of MNIST."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.kron(digits.images * 15, np.ones((3, 3))).astype(np.uint8)
    images = np.pad(images, ((0, 0), (2, 2), (2, 2)))
    labels = digits.target.astype(np.uint8)
    raw = data / "MNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for name, part in ("train", slice(0, 1500)), ("t10k", slice(1500, None)):
        _write_idx(raw / f"{name}-images-idx3-ubyte", images[part])
        _write_idx(raw / f"{name}-labels-idx1-ubyte", labels[part])


def _write_idx(file: Path, values: np.ndarray) -> None:
    head = np.array([0x0800 + values.ndim, *values.shape], dtype=">i4")
    file.write_bytes(head.tobytes() + values.tobytes())


def write_words(folder: Path) -> None:
    """Let a part of the validation text stand for the training text."""
    text = folder / "data" / "wikitext-2"
    (text / "train.txt").write_bytes((text / "valid.txt").read_bytes()[:200_000])


def write_letters(folder: Path) -> None:
    """Write the letters of this repository's readme as two files of tokens."""
    data = folder / "data" / "shakespeare_char"
    text = (folder / "README.md").read_text("utf-8") * 20
    letters = sorted(set(text))
    tokens = np.array([letters.index(letter) for letter in text], dtype=np.uint16)
    tokens[: len(tokens) * 9 // 10].tofile(data / "train.bin")
    tokens[len(tokens) * 9 // 10 :].tofile(data / "val.bin")


def write_text(folder: Path) -> None:
    """Write the readme of the repository as a text to learn."""
    (folder / "input.txt").write_text((folder / "README.md").read_text("utf-8") * 20, "utf-8")


def write_pictures(folder: Path) -> None:
    """Write smooth pictures as the folders of BSDS300."""
    from PIL import Image

    generator = np.random.default_rng(0)
    for part, n in ("train", 60), ("test", 4):
        target = folder / "dataset" / "BSDS300" / "images" / part
        target.mkdir(parents=True, exist_ok=True)
        for k in range(n):
            small = Image.fromarray(generator.integers(0, 256, (16, 16, 3), dtype=np.uint8))
            small.resize((260, 260), Image.Resampling.BICUBIC).save(target / f"{k}.png")


def write_images(folder: Path) -> None:
    """Write pictures of noise in two classes, as folders of PNG files."""
    from PIL import Image

    generator = np.random.default_rng(0)
    for part in "train", "validation":
        for label in "first", "second":
            target = folder / "images" / part / label
            target.mkdir(parents=True, exist_ok=True)
            for k in range(60 if part == "train" else 4):
                pixels = generator.integers(0, 256, (64, 64, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(target / f"{k}.png")


EXAMPLES = "pytorch/examples", "77f55b912142e11fcfdf5b530231fb9c52f181e8"
MAKEMORE = "karpathy/makemore", "988aa59e4d8fefa526d06f3b453ad116258398d4"
MINGPT = "karpathy/minGPT", "37baab71b9abea1b76ab957409a1cc2fbfba8a26"
NANOGPT = "karpathy/nanoGPT", "3adf61e154c3fe3fca428ad6bc3818b27a3b8291"
CLEANRL = "vwxyzjn/cleanrl", "fe8d8a03c41a7ef5b523e2e354bd01c363e786bb"
TIMM = "huggingface/pytorch-image-models", "aa4b5850c1543fa488abf260f18390eda46cf85d"
X_TRANSFORMERS = "lucidrains/x-transformers", "9252ed7838021ee61e6c5be0930b3a9a88efdf06"
GANS = "eriklindernoren/PyTorch-GAN", "36d3c77e5ff20ebe0aeefd322326a134a279b93e"
GANS_OF_DIGITS = (
    "aae",
    "cgan",
    "dcgan",
    "ebgan",
    "gan",
    "lsgan",
    "relativistic_gan",
    "wgan",
    "wgan_div",
    "wgan_gp",
)
TCN = "locuslab/TCN", "2f8c2b817050206397458dfd1f5a25ce8a32fe65"
TEXTS = "graykode/nlp-tutorial", "d05e31ec81d56d70c1db89b99ab07e948f7ebc11"
TUTORIAL = "yunjey/pytorch-tutorial", "0500d3df5a2a8080ccfccbc00aca0eacc21818db"
GYM = "gymnasium", "tyro", "tensorboard"
SMALL_GPT = (
    "config/train_shakespeare_char.py --device=cpu --compile=False --eval_iters=2 --block_size=64 "
    "--batch_size=8 --n_layer=4 --n_head=4 --n_embd=64 --dropout=0.1 --eval_interval=100"
)
AGENT = "--no-cuda --total-timesteps 40000"
PENDULUM = f"{AGENT} --env-id Pendulum-v1"
IMAGES = (
    "--data-dir images --num-classes 2 -b 4 -j 1 --device cpu --epochs 20 --no-prefetcher --model"
)


def _tutorial(script: str) -> Program:
    """Return a program of the tutorials, on digits instead of MNIST."""
    needs = "torchvision", "sklearn", "matplotlib"
    return Program(*TUTORIAL, f"tutorials/{script}/main.py", "", needs, prepare=write_digits)


def _makemore(kind: str) -> Program:
    arguments = f"--type {kind} --num-workers 0 --batch-size 16"
    return Program(*MAKEMORE, "makemore.py", arguments, ("tensorboard",))


def _text(script: str, mistake: str = "", most_backwards: int = 10_000) -> Program:
    """Return a program that learns a few sentences which it holds itself."""
    return Program(*TEXTS, f"{script}.py", mistake=mistake, most_backwards=most_backwards)


def _gan(name: str, mistake: str = "") -> Program:
    return Program(
        *GANS,
        f"implementations/{name}/{name}.py",
        "--n_epochs 3 --batch_size 32 --n_cpu 0",
        ("torchvision", "sklearn"),
        prepare=write_digits_for_gans,
        mistake=mistake,
    )


def _sequences(script: str, arguments: str) -> Program:
    return Program(*TCN, f"TCN/{script}.py", f"--cuda --epochs 2 {arguments}")  # without CUDA


def _timm(arguments: str) -> Program:
    return Program(
        *TIMM, "train.py", f"{IMAGES} {arguments}", ("torchvision", "yaml"), prepare=write_images
    )


def _agent(name: str, arguments: str) -> Program:
    return Program(*CLEANRL, f"cleanrl/{name}.py", arguments, GYM)


PROGRAMS = {
    "polynomial by hand": Program(*EXAMPLES, "regression/main.py", by_hand=True),
    "DCGAN": Program(
        *EXAMPLES,
        "dcgan/main.py",
        "--dataset fake --workers 0 --batchSize 4 --ngf 8 --ndf 8 --niter 2",
        ("torchvision",),
    ),
    "ImageNet ResNet-18": Program(
        *EXAMPLES,
        "imagenet/main.py",
        "--dummy --arch resnet18 --batch-size 2 --workers 0 --no-accel",
        ("torchvision",),
    ),
    "word LSTM by hand": Program(
        *EXAMPLES,
        "word_language_model/main.py",
        "--emsize 48 --nhid 48 --batch_size 8 --bptt 20",
        by_hand=True,
        prepare=write_words,
    ),
    "word Transformer": Program(
        *EXAMPLES,
        "word_language_model/main.py",
        "--model Transformer --use-optimizer --emsize 48 --nhid 48 --lr 0.001 --batch_size 8",
        prepare=write_words,
    ),
    "MNIST CNN": Program(
        *EXAMPLES,
        "mnist/main.py",
        "--no-accel --batch-size 16",
        ("torchvision", "sklearn"),
        prepare=write_digits,
    ),
    "MNIST RNN": Program(
        *EXAMPLES,
        "mnist_rnn/main.py",
        "--batch-size 16",
        ("torchvision", "sklearn"),
        prepare=write_digits,
    ),
    "VAE": Program(
        *EXAMPLES,
        "vae/main.py",
        "--no-accel --batch-size 16",
        ("torchvision", "sklearn"),
        prepare=write_digits,
    ),
    "Siamese network": Program(
        *EXAMPLES,
        "siamese_network/main.py",
        "--no-accel",  # at its rate, batches of 8 kill the units of its head
        ("torchvision", "sklearn"),
        prepare=write_digits,
    ),
    "forward-forward": Program(
        *EXAMPLES,
        "mnist_forward_forward/main.py",
        "--no_accel --epochs 100 --train_size 200 --test_size 50",
        ("torchvision", "sklearn"),
        prepare=write_digits,
    ),
    "super resolution": Program(
        *EXAMPLES,
        "super_resolution/main.py",
        "--upscale_factor 4 --batchSize 4 --nEpochs 10 --threads 0 --lr 0.001",
        ("torchvision", "six"),
        prepare=write_pictures,
    ),
    "actor and critic": Program(
        *EXAMPLES, "reinforcement_learning/actor_critic.py", "", ("gymnasium",)
    ),
    "REINFORCE": Program(*EXAMPLES, "reinforcement_learning/reinforce.py", "", ("gymnasium",)),
    "ImageNet MobileNet": Program(
        *EXAMPLES,
        "imagenet/main.py",
        "--dummy --arch mobilenet_v3_small --batch-size 4 --workers 0 --no-accel --lr 0.01",
        ("torchvision",),
    ),
    "linear regression": _tutorial("01-basics/linear_regression"),
    "logistic regression": _tutorial("01-basics/logistic_regression"),
    "feedforward network": _tutorial("01-basics/feedforward_neural_network"),
    "tutorial CNN": _tutorial("02-intermediate/convolutional_neural_network"),
    "tutorial RNN": _tutorial("02-intermediate/recurrent_neural_network"),
    "bidirectional RNN": _tutorial("02-intermediate/bidirectional_recurrent_neural_network"),
    "tutorial GAN": _tutorial("03-advanced/generative_adversarial_network"),
    "tutorial VAE": _tutorial("03-advanced/variational_autoencoder"),
    "makemore Transformer": _makemore("transformer"),
    "makemore GRU": _makemore("gru"),
    "makemore RNN": _makemore("rnn"),
    "makemore MLP": _makemore("mlp"),
    "makemore bag of words": _makemore("bow"),
    "minGPT adder": Program(
        *MINGPT,
        "projects/adder/adder.py",
        "--trainer.num_workers=0 --trainer.batch_size=16",
        folder=".",
    ),
    "nanoGPT": Program(*NANOGPT, "train.py", SMALL_GPT, prepare=write_letters),
    "minGPT letters": Program(
        *MINGPT,
        "projects/chargpt/chargpt.py",
        "--trainer.num_workers=0 --trainer.batch_size=8 --model.model_type=gpt-nano",
        folder=".",
        prepare=write_text,
    ),
    "PPO": _agent("ppo", AGENT),
    "PPO of numbers": _agent("ppo_continuous_action", PENDULUM),
    "RPO": _agent("rpo_continuous_action", PENDULUM),
    "DQN": _agent("dqn", f"{AGENT} --learning-starts 300"),
    "C51": _agent("c51", f"{AGENT} --learning-starts 300"),
    "PQN": _agent("pqn", AGENT),
    "DDPG": _agent("ddpg_continuous_action", f"{PENDULUM} --learning-starts 300"),
    "TD3": _agent("td3_continuous_action", f"{PENDULUM} --learning-starts 300"),
    "SAC": _agent("sac_continuous_action", f"{PENDULUM} --learning-starts 300"),
    "timm ResNet": _timm("resnet18 --img-size 64"),
    "timm ViT": _timm(
        "vit_tiny_patch16_224 --img-size 64 --model-kwargs img_size=64 --opt adamw --lr 0.001"
    ),
    "timm ConvNeXt": _timm("convnext_atto --img-size 64 --opt adamw --lr 0.001"),
    "timm MobileNet": _timm("mobilenetv3_small_050 --img-size 64 --opt rmsprop --lr 0.001"),
    "timm RegNet": _timm("regnetx_002 --img-size 64"),
    "x-transformers copy": Program(
        *X_TRANSFORMERS,
        "train_copy.py",
        needs=("einops", "einx", "loguru", "tqdm", "torch_einops_utils"),
    ),
    "sentence NNLM": _text("1-1.NNLM/NNLM"),
    "Word2Vec": _text("1-2.Word2Vec/Word2Vec-Skipgram(Softmax)"),
    "sentence CNN": _text("2-1.TextCNN/TextCNN"),
    "sentence RNN": _text("3-1.TextRNN/TextRNN"),
    "sentence LSTM": _text("3-2.TextLSTM/TextLSTM"),
    "sentence Bi-LSTM": _text("3-3.Bi-LSTM/Bi-LSTM"),
    "Seq2Seq": _text("4-1.Seq2Seq/Seq2Seq"),
    "Seq2Seq with attention": _text("4-2.Seq2Seq(Attention)/Seq2Seq(Attention)"),
    "Bi-LSTM with attention": _text("4-3.Bi-LSTM(Attention)/Bi-LSTM(Attention)"),
    "sentence Transformer": _text("5-1.Transformer/Transformer"),
    # The last layers of its attention are made in each forward, and never trained.
    "sentence BERT": _text("5-2.BERT/BERT", "layers_made_in_forward", most_backwards=40),
    **{f"digits {name}": _gan(name) for name in GANS_OF_DIGITS},
    # In these a cross entropy is given the results of a softmax.
    "digits acgan": _gan("acgan", "activation_before_loss"),
    "digits infogan": _gan("infogan", "activation_before_loss"),
    "digits sgan": _gan("sgan", "activation_before_loss"),
    "TCN adding": _sequences("adding_problem/add_test", "--seq_len 50"),
    "TCN copying": _sequences("copy_memory/copymem_test", "--blank_len 50"),
}
