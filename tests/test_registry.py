"""Names to objects: what is taken raises, what is unknown says what is close."""

import math
import os
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from notebook_probe import registry as module
from notebook_probe.errors import DuplicateNameError, RegistryWarning, UnknownNameError
from notebook_probe.registry import Registry


def test_a_member_is_found_by_its_name_and_its_aliases() -> None:
    norms = Registry[int]("norm")
    norms.add("l2", 2, aliases=("euclid", "frobenius"))
    assert norms["l2"] == norms["euclid"] == norms["frobenius"] == 2
    assert "euclid" in norms
    assert list(norms) == ["l2"], "an alias is no second member"
    assert len(norms) == 1
    assert norms.values() == [2]


def test_an_unknown_name_lists_the_close_ones_and_can_be_caught_three_ways() -> None:
    norms = Registry[int]("norm")
    norms.add("euclid", 2)
    with pytest.raises(UnknownNameError, match=r"^no norm 'euklid'; close: 'euclid'$") as caught:
        norms["euklid"]
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, KeyError)


def test_near_matches_include_aliases() -> None:
    norms = Registry[int]("norm")
    norms.add("l2", 2, aliases=("WeightNorm",))
    with pytest.raises(UnknownNameError, match="close: 'WeightNorm'"):
        norms["WeigthNorm"]


def test_a_taken_name_raises_and_changes_nothing() -> None:
    norms = Registry[int]("norm")
    norms.add("l2", 2)
    with pytest.raises(DuplicateNameError, match="'l2' is already registered: 2"):
        norms.add("l2", 3, aliases=("other",))
    assert norms["l2"] == 2
    assert "other" not in norms


def test_the_same_member_may_be_added_again() -> None:
    norms = Registry[object]("norm")
    norms.add("l2", norms)
    norms.add("l2", norms)
    assert len(norms) == 1


def test_a_member_defined_again_replaces_the_old_one() -> None:
    norms = Registry[float]("norm", same=lambda old, new: int(old) == int(new))
    norms.add("l2", 2.0, aliases=("euclid",))
    norms.add("l2", 2.5, aliases=("euclid",))
    assert norms["euclid"] == 2.5


def test_what_is_defined_again_has_the_aliases_of_its_last_definition() -> None:
    norms = Registry[float]("norm", same=lambda old, new: int(old) == int(new))
    norms.add("l2", 2.0, aliases=("euclid", "round"))
    norms.add("l2", 2.5, aliases=("euclid",))
    assert "round" not in norms
    norms.add("renamed", 2.7, aliases=("euclid",))
    assert norms["euclid"] == 2.7
    norms.add("euclid", 2.8)
    assert (norms["euclid"], norms["renamed"], norms["l2"]) == (2.8, 2.7, 2.5)


@pytest.mark.parametrize("alias", ["l1", "manhattan"])
def test_an_alias_that_is_taken_raises(alias: str) -> None:
    norms = Registry[int]("norm")
    norms.add("l1", 1, aliases=("manhattan",))
    with pytest.raises(DuplicateNameError, match=f"alias '{alias}' of 'l2' is taken"):
        norms.add("l2", 2, aliases=(alias,))
    assert "l2" not in norms


def test_a_name_that_is_an_alias_of_another_raises() -> None:
    norms = Registry[int]("norm")
    norms.add("l1", 1, aliases=("manhattan",))
    with pytest.raises(DuplicateNameError, match="'manhattan' would hide the alias of 'l1'"):
        norms.add("manhattan", 3)
    assert norms["manhattan"] == 1


def test_entry_points_are_loaded_at_the_first_miss_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def entry_points(group: str) -> list[EntryPoint]:
        asked.append(group)
        return [EntryPoint("pi", "math:pi", group)]

    monkeypatch.setattr(module, "entry_points", entry_points)
    numbers = Registry[float]("number", "some.group")
    numbers.add("e", 2.718)
    assert numbers["e"] == 2.718
    assert asked == []
    assert numbers["pi"] == pytest.approx(3.14159, abs=1e-5)
    assert numbers["pi"] == pytest.approx(3.14159, abs=1e-5)
    assert asked == ["some.group"]


def test_what_is_installed_later_is_found_and_nothing_is_read_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = "group.of.this.test"

    def install(package: str, name: str) -> None:
        folder = tmp_path / f"{package}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[{group}]\n{name} = math:{name}\n")
        at = 1_000_000_000 + len([*tmp_path.iterdir()])
        os.utime(tmp_path, (at, at))  # as a clock of any resolution would tell in the end

    asked: list[str] = []
    read = metadata.entry_points

    def counted(group: str) -> metadata.EntryPoints:
        asked.append(group)
        return read(group=group)

    monkeypatch.setattr(metadata, "entry_points", counted)
    monkeypatch.syspath_prepend(tmp_path)
    install("first", "pi")
    for _ in range(3):
        numbers = Registry[float]("number", group)
        assert numbers["pi"] == math.pi
    install("second", "tau")
    assert numbers["tau"] == math.tau
    assert asked == [group] * 2


def test_an_extension_that_cannot_be_loaded_is_warned_of_once_and_hurts_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def entry_points(group: str) -> list[EntryPoint]:
        values = {"gone": "no_such_package:pi", "pi": "math:pi"}
        return [EntryPoint(name, value, group) for name, value in values.items()]

    monkeypatch.setattr(module, "entry_points", entry_points)
    numbers = Registry[float]("number", "some.group")
    with pytest.warns(RegistryWarning, match=r"number 'gone' of no_such_package:pi could not be"):
        assert numbers["pi"] == pytest.approx(3.14159, abs=1e-5)
    with pytest.raises(UnknownNameError, match="no number 'gone': no_such_package:pi could not be"):
        numbers["gone"]
    with pytest.raises(UnknownNameError, match="no number 'pj'; known: 'pi'"):
        numbers["pj"]
