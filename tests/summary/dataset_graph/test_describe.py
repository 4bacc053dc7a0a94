"""What a training's data is made of, described without reading any of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    StackDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

from notebook_probe.lineage.dataset_graph import DataPart, DatasetGraph
from notebook_probe.summary.dataset_graph.describe import DEEPEST, MOST_PARTS, describe
from notebook_probe.summary.dataset_graph.parts import MOST_OF_ONE
from notebook_probe.train import Dataset as OurDataset


class Compose:
    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        raise AssertionError("nothing is transformed")


class Normalize(torch.nn.Module):
    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__()
        self.mean, self.std = mean, std


class Images(Dataset[Any]):
    """As torchvision's: a folder, and transforms."""

    def __init__(self, **attributes: Any) -> None:
        self.root = "/data/images"
        self.train = True
        self.transform = Compose([Normalize([0.5], [0.25]), torch.nn.Flatten(2)])
        self.target_transform = partial(int, base=10)
        self.samples = [("a.png", 1)] * 1000
        vars(self).update(attributes)

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> Any:
        raise AssertionError("no sample is read")


class Stream(IterableDataset[Any]):
    def __init__(self) -> None:
        self.shards = ["a.tar", "b.tar"]

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("nothing is drawn")

    def __len__(self) -> int:
        return 64


def found(graph: DatasetGraph, name: str) -> DataPart:
    return next(part for part in graph if part.name == name)


def outline(graph: DatasetGraph) -> list[str]:
    return [f"{'  ' * depth}{one.role} {one.name}" for depth, one in graph.root.lines()]


def test_a_loader_is_told_with_its_settings_its_sampler_and_its_nested_data() -> None:
    first, second = random_split(Images(), [900, 100])
    loader: DataLoader[Any] = DataLoader(
        ConcatDataset([first, second]), 32, shuffle=True, num_workers=2
    )
    assert outline(describe(loader)) == [
        " DataLoader",
        "  dataset ConcatDataset",
        "    datasets[0] Subset",
        "      dataset Images",
        "        transform Compose",
        "          transforms[0] Normalize",
        "          transforms[1] Flatten",
        "    datasets[1] Subset",
        "  batch_sampler BatchSampler",
        "    sampler RandomSampler",
    ]
    graph = describe(loader)
    settings = graph.root.settings
    told = {name: settings[name] for name in ("batch_size", "shuffle", "num_workers", "drop_last")}
    assert told == {"batch_size": 32, "shuffle": True, "num_workers": 2, "drop_last": False}
    assert settings["collate_fn"] == "default_collate"
    assert [*settings][:3] == ["batch_size", "shuffle", "num_workers"], "what is asked for first"
    assert graph.root.length == 32, "1000 samples in batches of 32"
    assert [part.length for part in graph][1:4] == [1000, 900, 1000]
    assert found(graph, "Normalize").settings["mean"] == [0.5]
    assert found(graph, "Images").settings["target_transform"] == "partial(int, base=10)"
    assert found(graph, "Images").settings["samples"] == "list of 1000"
    assert found(graph, "RandomSampler").settings == {"replacement": False}


def test_a_plain_list_of_samples_is_a_data_set_and_one_of_data_sets_is_looked_into() -> None:
    class Several(Dataset[Any]):
        def __init__(self, dataset: list[Any]) -> None:
            self.dataset = dataset

    plain: DataLoader[Any] = DataLoader([(torch.ones(2), 1)] * 40, 8)  # type: ignore[arg-type]
    assert outline(describe(plain))[:2] == [" DataLoader", "  dataset list"]
    assert found(describe(plain), "list").length == 40
    assert outline(describe(Several([Images(), Stream()]))) == [
        " Several",
        "  dataset[0] Images",
        "    transform Compose",
        "      transforms[0] Normalize",
        "      transforms[1] Flatten",
        "  dataset[1] Stream",
    ]


TENSORS = {"tensors": ["float32 tensor (7, 3)"]}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (TensorDataset(torch.ones(7, 3)), ["dataset TensorDataset 7", TENSORS]),
        (StackDataset(Subset(Images(), [3] * 7)), ["dataset StackDataset 7", None]),
        (Subset(Images(), [3, 5]), ["dataset Subset 2", {"indices": [3, 5]}]),
        ([1, 2, 3], ["data list 3", {}]),
        ({"x": 1}, ["data dict 1", {}]),
        (torch.ones(4, 2), ["data Tensor 4", None]),
        (np.ones(3), ["data ndarray 3", None]),
        ((n for n in range(3)), ["data generator None", {}]),
        (Stream(), ["dataset Stream 64", {"shards": ["a.tar", "b.tar"]}]),
        (ChainDataset([Stream()]), ["dataset ChainDataset 64", {}]),
        (None, ["data NoneType None", {}]),
    ],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
def test_whatever_is_trained_on_is_told(data: object, expected: list[Any]) -> None:
    root = describe(data).root
    assert f"{root.kind} {root.name} {root.length}" == expected[0]
    assert expected[1] is None or dict(root.settings) == expected[1]


def test_our_own_dataset_is_told_with_what_it_draws_from() -> None:
    graph = describe(OurDataset(DataLoader(TensorDataset(torch.ones(8)), 4), name="digits"))
    assert outline(graph)[:3] == [" Dataset", "  source DataLoader", "    dataset TensorDataset"]
    assert graph.root.settings["name"] == "digits"
    assert graph.root.length == 2


def test_samplers_of_ones_own_are_told() -> None:
    data = TensorDataset(torch.ones(6))
    weighted = WeightedRandomSampler([1.0] * 6, 12)
    sampler = found(describe(DataLoader(data, 2, sampler=weighted)), "WeightedRandomSampler")
    assert sampler.settings["num_samples"] == 12
    assert sampler.length == 12
    batches = BatchSampler(SequentialSampler(data), 3, drop_last=True)
    graph = describe(DataLoader(data, batch_sampler=batches))
    assert found(graph, "BatchSampler").settings == {"batch_size": 3, "drop_last": True}
    assert outline(graph)[-1] == "    sampler SequentialSampler", "whose data is told already"


class Table:
    """As Hugging Face's: a table behind private attributes."""

    def __init__(self) -> None:
        self._data = object()

    column_names = property(lambda self: ["text", "label"])
    num_rows = property(lambda self: 25_000)
    features = property(lambda self: {"text": "string", "label": "int64"})
    split = property(lambda self: 1 / 0)

    def __len__(self) -> int:
        return 25_000

    def __getitem__(self, index: int) -> Any:
        raise AssertionError("no row is read")


def test_a_table_is_told_by_its_columns() -> None:
    part = describe(DataLoader(Table(), 4)).root.parts[0]  # type: ignore[arg-type]
    assert (part.kind, part.name, part.length) == ("dataset", "Table", 25_000)
    assert part.settings == {
        "column_names": ["text", "label"],
        "num_rows": 25_000,
        "features": {"text": "string", "label": "int64"},
    }


def test_a_loader_of_a_stream_is_not_asked_for_a_length_that_it_would_warn_of() -> None:
    class Short(Stream):
        def __iter__(self) -> Iterator[Any]:
            return iter(range(100))

    loader = DataLoader(Short(), batch_size=None)
    assert describe(loader).root.length is None
    assert len([*loader]) == 100, "torch warns of a length it has told, and warnings are errors"


def test_the_generators_of_a_loader_are_left_as_they_were() -> None:
    generator = torch.Generator().manual_seed(3)
    loader: DataLoader[Any] = DataLoader(Images(), 2, shuffle=True, generator=generator)
    own, process = generator.get_state(), torch.get_rng_state()
    describe(loader)
    assert torch.equal(own, generator.get_state())
    assert torch.equal(process, torch.get_rng_state())


def test_workers_draw_what_they_draw_without_it() -> None:
    loader = DataLoader(TensorDataset(torch.arange(8)), 4, num_workers=1)
    batches = iter(loader)
    first = next(batches)[0]
    assert describe(loader).root.settings["num_workers"] == 1
    assert torch.equal(torch.cat([first, next(batches)[0]]), torch.arange(8))


# ------------------------------------------------------------------------------ enemies


def test_secrets_and_large_values_stay_out() -> None:
    graph = describe(
        Images(
            token="hf_abc",
            api_key="k",
            db_password="p",
            pad_token="<pad>",
            url="https://me:pass@host/x",
            text="x" * 100_000,
            blob=b"x" * 1000,
            many={str(n): n for n in range(1000)},
            number=10**400,
            nan=float("nan"),
        )
    )
    text = json.dumps(graph.plain(), allow_nan=False)
    assert len(text) < 4000
    settings = graph.root.settings
    assert settings["token"] == settings["api_key"] == settings["db_password"] == "(hidden)"
    assert (settings["pad_token"], settings["url"]) == ("<pad>", "https://host/x")
    assert settings["text"] == "x" * 200 + "…"
    assert (settings["blob"], settings["many"]) == ("1000 bytes", "dict of 1000")
    assert (settings["number"], settings["nan"]) == ("about 2**1328", "nan")


def _raise(*_: object) -> Any:
    raise RuntimeError("hostile")


class Hostile:
    __len__ = __iter__ = __call__ = __repr__ = __str__ = __bool__ = __eq__ = _raise
    __getitem__ = __contains__ = __index__ = _raise
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    __class__ = property(_raise)


class Loud(str):
    __slots__ = ()
    __str__ = __repr__ = __len__ = __getitem__ = _raise


class Broken:
    __dict__ = property(_raise)


HOSTILE = {"raises": Hostile, "broken": Broken, "loud": lambda: Loud("x"), "class": lambda: Hostile}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_no_object_breaks_it_whatever_it_does_when_it_is_asked(make: Callable[[], Any]) -> None:
    describe(make())
    held = Images(dataset=make(), other=make(), transforms=[make(), make()], named={"a": make()})
    graph = describe(DataLoader(held, 4))
    json.dumps(graph.plain(), allow_nan=False)
    assert repr(graph)
    assert graph._repr_html_()
    assert found(graph, "Images").length == 1000


def test_what_holds_itself_ends() -> None:
    data = Images()
    vars(data)["dataset"] = data
    vars(data)["transforms"] = [data, data.transform, data.transform]
    assert len([*describe(DataLoader(data, 4))]) < 12


def test_a_part_that_is_there_twice_is_told_once_and_named_again() -> None:
    data = TensorDataset(torch.ones(2))
    parts = describe(ConcatDataset([data, data])).root.parts
    assert [(part.role, dict(part.settings) == {"again": True}) for part in parts] == [
        ("datasets[0]", False),
        ("datasets[1]", True),
    ]


def test_what_is_put_round_transforms_that_are_told_is_no_part_of_its_own() -> None:
    class Both:
        def __init__(self, transform: Any) -> None:
            self.transform, self.target_transform = transform, int

        def __call__(self, x: Any) -> Any:
            return x

    data = Images()
    vars(data)["transforms"] = Both(vars(data)["transform"])
    assert [part.role for part in describe(data).root.parts] == ["transform"]
    vars(data)["transforms"] = Both(Compose([Normalize(0.5, 2.0)]))
    assert [part.role for part in describe(data).root.parts] == ["transform", "transforms"]


@pytest.mark.slow
def test_breadth_and_depth_have_an_end_that_is_told() -> None:
    wide = describe(ConcatDataset([TensorDataset(torch.ones(1)) for _ in range(100)]))
    assert len(wide.root.parts) == MOST_OF_ONE
    assert wide.root.n_left_out == 100 - MOST_OF_ONE
    assert "68 more parts" in repr(wide)
    deep: Dataset[Any] = TensorDataset(torch.ones(1))
    for _ in range(100):
        deep = Subset(deep, [0])
    graph = describe(deep)
    assert len([*graph]) == DEEPEST + 1
    bushy = describe([[[Images() for _ in range(30)] for _ in range(30)] for _ in range(30)])
    assert len([*bushy]) <= MOST_PARTS
    held: list[Dataset[Any]] = [
        ConcatDataset([TensorDataset(torch.ones(1)) for _ in range(30)]) for _ in range(30)
    ]
    assert len([*describe(ConcatDataset(held))]) <= MOST_PARTS


@pytest.mark.slow
def test_whatever_it_holds_a_graph_fits_into_an_event() -> None:
    large = {f"setting_{n}": ["é" * 200] * 16 for n in range(40)}
    many = [Images(transform=None, **large) for _ in range(30)]
    held: Dataset[Any] = ConcatDataset([ConcatDataset(many), *(Images(**large) for _ in range(30))])
    text = json.dumps(describe(held).plain(), ensure_ascii=False)
    assert len(text.encode()) < 100_000
    assert len([*describe(held)]) == 62 + 90


def test_a_list_of_a_thousand_samples_is_a_setting_whatever_the_samples_are() -> None:
    class Sample:
        def __call__(self) -> None: ...

    graph = describe(Images(samples=[Sample() for _ in range(1000)]))
    assert graph.root.settings["samples"] == "list of 1000"


def test_names_of_ones_own_are_escaped_in_a_notebook() -> None:
    class Evil:
        def __call__(self) -> None: ...

    Evil.__qualname__ = "<script>alert(1)</script>"
    graph = describe(Images(transform=Evil(), root=Path("<b>"), **{"<i>": 1}))
    assert "<script" not in graph._repr_html_()
    assert "&lt;script&gt;" in graph._repr_html_()
    assert "<b>alert" not in graph._repr_html_()
    assert "<i>" not in graph._repr_html_()
