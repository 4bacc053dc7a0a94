"""Addresses of services, which are secrets, and sending to them by apprise."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from typing import Any

from notebook_probe.errors import MissingExtraError

__all__ = ["Services"]

SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*(?=://)")
SHOWN = "https://appriseit.com/services"


class Services:
    """Services that take messages; only the kinds of their addresses are ever shown.

    Parameters
    ----------
    addresses : sequence of str
        URLs of apprise, such as ``"slack://..."`` and ``"mailto://..."``.

    Raises
    ------
    TypeError
        For anything but text.
    ValueError
        For an address that no service has; the error has its place, and not the address.
    MissingExtraError
        Without apprise.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        for place, one in enumerate(addresses, 1):
            if not isinstance(one, str):
                raise TypeError(f"notify: address {place} is {type(one).__name__}, not text")
        if not addresses:
            raise ValueError("notify: no address is given")
        self.kinds = tuple(_kind(one) for one in addresses)
        """Kind of each address, such as ``"slack"``."""
        self._senders = tuple(
            _sender(one, f"address {place} of {len(addresses)}")
            for place, one in enumerate(addresses, 1)
        )

    def __repr__(self) -> str:
        return f"<Services: {', '.join(self.kinds)}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("addresses of services are secrets, which are not copied")

    def __deepcopy__(self, _: object) -> Services:
        return self

    def send(self, title: str, text: str, picture: bytes | None = None) -> list[str]:
        """Send a message to each service; return the kinds of those that did not take it."""
        with _Muted():
            taken = [_send(one, title, text, picture) for one in self._senders]
        return [kind for kind, is_sent in zip(self.kinds, taken, strict=True) if not is_sent]


def _kind(address: str) -> str:
    found = SCHEME.match(address.strip())
    return "unknown" if found is None else found[0].lower()


def _sender(address: str, place: str) -> Any:
    try:
        import apprise
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "notifications need apprise: pip install 'notebook-probe[notify]'"
        ) from error
    asset = apprise.AppriseAsset(app_id="notebook_probe", async_mode=False, secure_logging=True)
    sender = apprise.Apprise(asset=asset)
    with _Muted():
        try:
            is_known = sender.add(address)
        except Exception:  # a plugin's, whose error may have the address
            is_known = False
    if not is_known:
        raise ValueError(f"notify: {place}, {_kind(address)}://..., is none of {SHOWN}")
    return sender


def _send(sender: Any, title: str, text: str, picture: bytes | None) -> bool:
    """Send to one service; a failure of any kind is False, as its error may have the address."""
    import apprise

    try:
        attached = None
        if picture is not None:
            attached = apprise.AppriseAttachment()
            attached.add(apprise.attachment.memory.AttachMemory(picture, name="run.png"))
        return bool(sender.notify(body=text, title=title, attach=attached))
    except Exception:
        return False


class _Muted:
    """While it is entered, apprise logs nothing of this thread: its lines may have addresses."""

    def __enter__(self) -> None:
        thread = threading.get_ident()
        self._filter = lambda record: record.thread != thread
        logging.getLogger("apprise").addFilter(self._filter)

    def __exit__(self, *_: object) -> None:
        logging.getLogger("apprise").removeFilter(self._filter)
