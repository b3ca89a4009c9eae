"""The environment of the program. Pure. Every variable is described in docs/design/server.md."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.model.path import PathKind


@dataclass(frozen=True)
class SessionEndpoint:
    """Where and how the program's shim opens its sessions. secret: 64 hex digits."""

    address: str
    socket_name: str | None
    path: PathKind
    secret: str
    timeout_s: float


@dataclass(frozen=True)
class Observers:
    """What is watched of the program; empty: nothing."""

    stats: str = ""
    trace: str = ""
    record: str = ""


def program_environment(
    environ: Mapping[str, str], client_dir: str, endpoint: SessionEndpoint, observers: Observers, preloads: Sequence[str] = ()
) -> dict[str, str]:
    """The caller's environment, the shim's folder first on the library path, this session's variables instead of older ones.

    preloads: absolute paths; they come behind the caller's own and replace those of an outer session.
    """
    others = [path for path in re.split("[ :]", environ.get("LD_PRELOAD", "")) if path and os.path.dirname(path) != client_dir]
    folders = [folder for folder in environ.get("LD_LIBRARY_PATH", "").split(":") if folder and folder != client_dir]
    session = {
        "LD_LIBRARY_PATH": ":".join([client_dir, *folders]),
        "LD_PRELOAD": ":".join([*others, *(_preload_name(path) for path in preloads)]),
        "WEFT_PATH": endpoint.path.value,
        "WEFT_SERVER_ADDRESS": endpoint.address,
        "WEFT_SERVER_SOCKET": endpoint.socket_name or "",
        "WEFT_SESSION_SECRET": endpoint.secret,
        "WEFT_TIMEOUT_S": f"{endpoint.timeout_s:g}",
        "WEFT_STATS": observers.stats,
        "WEFT_TRACE": observers.trace,
        "WEFT_RECORD": observers.record,
    }
    merged = dict(environ) | session
    return {name: value for name, value in merged.items() if value or name not in session}


def _preload_name(path: str) -> str:
    """The loader splits its list at spaces and colons; a bare name is found through the library path."""
    return os.path.basename(path) if re.search("[ :]", path) else path
