"""Settings of a summary collector, parsed and checked once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from notebook_probe.checks import is_whole
from notebook_probe.errors import near

__all__ = ["LANDSCAPE", "NPY", "REGULAR", "SWITCHES", "CollectorSettings", "Unit", "whole_number"]

Unit: TypeAlias = Literal["step", "epoch"]

SWITCHES = (
    "collect_metric",
    "collect_graph",
    "collect_train_lineage",
    "collect_eval_lineage",
    "collect_input_data",
    "collect_dataset_graph",
)
"""Switches of the items, each on by default."""

REGULAR, LANDSCAPE = "histogram_regular", "collect_landscape"
KNOWN = (*SWITCHES, REGULAR, LANDSCAPE)
DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {**dict.fromkeys(SWITCHES, True), REGULAR: None, LANDSCAPE: MappingProxyType({})}
)
NPY = "npy"
WHO = "SummaryCollector"


@dataclass(frozen=True, slots=True)
class CollectorSettings:
    """Settings of a collector: what to collect, when, and where to store it.

    Attributes
    ----------
    summary_dir : Path
    collect_freq : int
        Interval in units.
    num_process : int
        Maximum number of threads that write files.
    specified : mapping
        Valid keys of `KNOWN` after the merge with the defaults; a missing item is not collected.
    custom_lineage_data : mapping
    collect_tensor_freq, max_file_size : int or None
    tensor_format : "npy" or None
    unit : "step" or "epoch"
    """

    summary_dir: Path
    collect_freq: int
    num_process: int
    specified: Mapping[str, Any]
    custom_lineage_data: Mapping[str, int | float | str]
    collect_tensor_freq: int | None
    max_file_size: int | None
    tensor_format: str | None
    unit: Unit

    @classmethod
    def read(
        cls,
        summary_dir: str,
        collect_freq: int = 10,
        num_process: int = 32,
        collect_specified_data: Mapping[str, Any] | None = None,
        keep_default_action: bool = True,
        custom_lineage_data: Mapping[str, int | float | str] | None = None,
        collect_tensor_freq: int | None = None,
        max_file_size: int | None = None,
        export_options: Mapping[str, Any] | None = None,
        unit: Unit = "step",
    ) -> CollectorSettings:
        """Check the arguments; the folder is made once all of them are valid.

        Raises
        ------
        TypeError, ValueError, NotADirectoryError
            An invalid argument, with what is allowed.
        """
        if not isinstance(keep_default_action, bool):
            raise _wrong("keep_default_action", keep_default_action, "True or False")
        if unit not in get_args(Unit):
            raise ValueError(f"{WHO}(unit={unit!r}); allowed: 'step', 'epoch'")
        return cls(
            collect_freq=_count("collect_freq", collect_freq),
            num_process=_count("num_process", num_process),
            specified=_specified(collect_specified_data, keep_default_action),
            custom_lineage_data=_lineage(custom_lineage_data),
            collect_tensor_freq=_count_or_none("collect_tensor_freq", collect_tensor_freq),
            max_file_size=_count_or_none("max_file_size", max_file_size),
            tensor_format=_tensor_format(export_options),
            unit=unit,
            summary_dir=_folder(summary_dir),  # last: what is refused leaves no folder
        )

    def collects(self, switch: str) -> bool:
        """Return whether one of `SWITCHES` is on."""
        return bool(self.specified.get(switch, False))

    @property
    def landscape(self) -> Mapping[str, Any] | None:
        """Given settings of the loss landscape, without defaults; None if it is off."""
        return self.specified.get(LANDSCAPE)


def whole_number(
    who: str, name: str, given: Any, allowed: str = "a whole number above 0, or None"
) -> int:
    """Return the number unchanged if it is a whole number above 0.

    Raises
    ------
    TypeError, ValueError
        An invalid value, with its name and what is allowed.
    """
    if not is_whole(given):
        raise _wrong(name, given, allowed, who)
    if given <= 0:
        raise ValueError(f"{who}({name}={given!r}); allowed: {allowed}")
    return given


def _wrong(name: str, given: Any, allowed: str, who: str = WHO) -> TypeError:
    return TypeError(f"{who}({name}={given!r}), a {type(given).__name__}; allowed: {allowed}")


def _count(name: str, given: Any) -> int:
    return whole_number(WHO, name, given, "a whole number above 0")


def _count_or_none(name: str, given: Any) -> int | None:
    return None if given is None else whole_number(WHO, name, given)


def _folder(given: Any) -> Path:
    if not isinstance(given, str):
        raise _wrong("summary_dir", given, "text, the path of a folder")
    if not given.strip():
        raise ValueError(f"{WHO}(summary_dir={given!r}); allowed: the path of a folder")
    folder = Path(given).expanduser().absolute()
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{WHO}(summary_dir={given!r}) is a file; a folder is expected")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _texts(name: str, given: Any) -> Mapping[str, Any]:
    """Return a mapping by names."""
    if not isinstance(given, Mapping):
        raise _wrong(name, given, "a dict, or None")
    for key in given:
        if not isinstance(key, str):
            raise TypeError(f"{WHO}({name}=...): the key {key!r} is no text")
    return given


def _specified(given: Any, keeps_defaults: bool) -> Mapping[str, Any]:
    chosen = {} if given is None else dict(_texts("collect_specified_data", given))
    for key, value in chosen.items():
        if key not in KNOWN:
            raise ValueError(
                f"{WHO}(collect_specified_data=...): no key is called {key!r}; {near(key, KNOWN)}"
            )
        chosen[key] = _checked(key, value)
    # What is inside of the landscape is merged with its own defaults, where it is known.
    return MappingProxyType({**(DEFAULTS if keeps_defaults else {}), **chosen})


def _checked(key: str, value: Any) -> Any:
    if key in SWITCHES:
        if not isinstance(value, bool):
            raise _wrong(f"collect_specified_data[{key!r}]", value, "True or False")
        return value
    if value is None:
        return None
    if key == LANDSCAPE:
        return MappingProxyType(dict(_texts(f"collect_specified_data[{key!r}]", value)))
    if not isinstance(value, str):
        raise _wrong(f"collect_specified_data[{key!r}]", value, "a regular expression, or None")
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(
            f"{WHO}(collect_specified_data[{key!r}]={value!r}) is no regular expression: {error}"
        ) from None
    return value


def _lineage(given: Any) -> Mapping[str, int | float | str]:
    chosen = {} if given is None else dict(_texts("custom_lineage_data", given))
    for key, value in chosen.items():
        if not isinstance(value, int | float | str) or isinstance(value, bool):
            raise _wrong(f"custom_lineage_data[{key!r}]", value, "a number or text")
    return MappingProxyType(chosen)


def _tensor_format(given: Any) -> str | None:
    allowed = "None, {'tensor_format': 'npy'} or {'tensor_format': None}"
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise _wrong("export_options", given, allowed)
    if set(given) != {"tensor_format"} or given["tensor_format"] not in (NPY, None):
        raise ValueError(f"{WHO}(export_options={dict(given)!r}); allowed: {allowed}")
    return NPY if given["tensor_format"] else None
