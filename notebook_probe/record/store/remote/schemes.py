"""The URLs that are known from the beginning."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

from notebook_probe.record.store.destination import import_extra
from notebook_probe.record.store.remote.address import store_schemes
from notebook_probe.record.store.remote.icechunk import IcechunkEngine

TIMES: dict[str, Any] = {
    "client_options": {"timeout": "30s", "connect_timeout": "10s", "allow_http": True},
    "retry_config": {"max_retries": 2, "retry_timeout": timedelta(seconds=30)},
}
"""Short timeouts: the shipper retries. Plain http is for endpoints that say so."""

_memory: dict[str, Any] = {}


def _objects(url: str, options: Mapping[str, Any]) -> Any:
    return import_extra("obstore", "cloud", url).store.from_url(url, config=dict(options), **TIMES)


def _directory(url: str, options: Mapping[str, Any]) -> Any:
    folder = url2pathname(urlparse(url).path)
    return import_extra("obstore", "cloud", url).store.LocalStore(folder, mkdir=True)


def _in_memory(url: str, options: Mapping[str, Any]) -> Any:
    """Return the in-memory store of this process with this name."""
    return _memory.setdefault(url, import_extra("obstore", "cloud", url).store.MemoryStore())


def _icechunk_folder(url: str, options: Mapping[str, Any]) -> Any:
    folder = url2pathname(urlparse(url).path)
    storage = import_extra("icechunk", "icechunk", url).local_filesystem_storage(folder)
    return IcechunkEngine(storage, url)


def _icechunk_s3(url: str, options: Mapping[str, Any]) -> Any:
    parts = urlparse(url)
    credentials = {} if "access_key_id" in options else {"from_env": True}
    storage = import_extra("icechunk", "icechunk", url).s3_storage(
        bucket=parts.netloc, prefix=parts.path.strip("/"), **{**credentials, **options}
    )
    return IcechunkEngine(storage, url)


for name in ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss"):
    store_schemes.add(name, _objects)
store_schemes.add("file", _directory)
store_schemes.add("memory", _in_memory)
store_schemes.add("icechunk", _icechunk_folder)
store_schemes.add("icechunk+s3", _icechunk_s3)
