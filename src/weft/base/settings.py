"""Settings of `weft run` and `weft serve`: one typed struct each, with default, unit, help and variable beside each field.

Precedence: flag > environment > file > default; each value remembers which one won. Unknown keys in the file are errors.
docs/reference/settings.md is generated from the structs (python -m weft.cli.reference).
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args, get_type_hints

import msgspec

from weft.base.errors import InvalidOption, UnknownSetting, UnreadableFile

CONFIG_VARIABLE = "WEFT_CONFIG"


@dataclass(frozen=True)
class About:
    """What the reference says about one setting."""

    variable: str
    help: str
    unit: str = ""


class RunSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Table [run] of the file: the client's side."""

    server: Annotated[
        tuple[str, ...],
        About(
            "WEFT_SERVER",
            "Servers to ask for a lease, in this order (comma-separated in the variable). None: an embedded server",
            "host:port",
        ),
    ] = ()
    token_file: Annotated[str, About("WEFT_TOKEN_FILE", "File that holds the server's shared secret")] = ""
    path: Annotated[
        Literal["shm", "tcp"] | None,
        About("WEFT_FORCE_PATH", "Path of the sessions; unset: shm on the same host, else tcp", "shm or tcp"),
    ] = None
    timeout_s: Annotated[
        float, About("WEFT_TIMEOUT_S", "Time to reach a server, and silence after which a session counts as lost", "s")
    ] = 5.0
    software_gpus: Annotated[int, About("WEFT_SOFTWARE_GPUS", "Software GPUs of the embedded server")] = 1
    software_memory: Annotated[str, About("WEFT_SOFTWARE_MEMORY", "Memory of each of them", "size")] = "8GiB"
    compute_capability: Annotated[str, About("WEFT_COMPUTE_CAPABILITY", "Compute capability of each of them", "major.minor")] = (
        "8.0"
    )
    cache_dir: Annotated[
        str, About("WEFT_CACHE_DIR", "Module images known to the embedded server; empty: below XDG_CACHE_HOME")
    ] = ""


class ServeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Table [serve] of the file: the server's side."""

    listen: Annotated[str, About("WEFT_LISTEN", "Address for control and sessions; port 0 takes a free one", "host:port")] = (
        "127.0.0.1:4410"
    )
    token_file: Annotated[
        str, About("WEFT_TOKEN_FILE", "File with the shared secret, made if missing; must be given outside loopback")
    ] = ""
    software_gpus: Annotated[int, About("WEFT_SOFTWARE_GPUS", "Serve this many software GPUs; 0: the GPUs of the driver")] = 0
    software_memory: Annotated[str, About("WEFT_SOFTWARE_MEMORY", "Memory of each software GPU", "size")] = "8GiB"
    compute_capability: Annotated[
        str, About("WEFT_COMPUTE_CAPABILITY", "Compute capability of the software GPUs", "major.minor")
    ] = "8.0"
    driver: Annotated[str, About("WEFT_DRIVER", "Driver library to serve with --software-gpus 0")] = "libcuda.so.1"
    cache_dir: Annotated[str, About("WEFT_CACHE_DIR", "Cache of module images; empty: below XDG_CACHE_HOME")] = ""
    cache_size: Annotated[str, About("WEFT_CACHE_SIZE", "Bound of that cache; the oldest images go first", "size")] = "4GiB"
    max_connections: Annotated[int, About("WEFT_MAX_CONNECTIONS", "Control and pending connections at a time")] = 512
    max_sessions: Annotated[int, About("WEFT_MAX_SESSIONS", "Executors of one lease at a time")] = 64
    log_level: Annotated[str, About("WEFT_LOG_LEVEL", "Events to log from", "debug, info, warning, error")] = "info"
    log_json: Annotated[bool, About("WEFT_LOG_JSON", "Events as JSON lines")] = False


S = TypeVar("S", bound=msgspec.Struct)
SECTIONS: Mapping[type, str] = {RunSettings: "run", ServeSettings: "serve"}


@dataclass(frozen=True)
class Resolved(Generic[S]):
    """The values, and for each field which source gave it: `flag`, `WEFT_...`, the file's path, or `default`."""

    values: S
    origins: Mapping[str, str]


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    if named := environ.get(CONFIG_VARIABLE):
        return Path(named)
    return Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "weft" / "config.toml"


def cache_dir(named: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of cached module images: the setting, or one below the user's cache folder."""
    return Path(named) if named else Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft" / "images"


def describe_settings(kind: type[S]) -> Iterator[tuple[str, About, Any]]:
    """Name, description and default of each field, in order. Any: defaults have the types of the fields."""
    for field in msgspec.structs.fields(kind):
        yield field.name, _about(kind, field.name), field.default


def load_settings(kind: type[S], flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Resolved[S]:
    """`flags`: what the command line gave, None for nothing. Raises InvalidOption, UnknownSetting, UnreadableFile."""
    path = config_path(environ)
    layers = [
        ({name: value for name, value in flags.items() if value is not None}, dict.fromkeys(flags, "flag")),
        _from_environment(kind, environ),
        _from_file(kind, path),
    ]
    values: dict[str, Any] = {}
    origins = {field.name: "default" for field in msgspec.structs.fields(kind)}
    for layer, sources in reversed(layers):
        values.update(layer)
        origins.update({name: sources[name] for name in layer})
    return Resolved(_convert(kind, values, origins), origins)


def _convert(kind: type[S], values: Mapping[str, Any], origins: Mapping[str, str]) -> S:
    hints = get_type_hints(kind)
    converted: dict[str, Any] = {}
    for name, value in values.items():
        try:
            converted[name] = msgspec.convert(value, hints[name], strict=False)
        except msgspec.ValidationError as error:
            raise InvalidOption(f"{name} ({origins[name]})", value, str(error)) from None
    return kind(**converted)


def _from_environment(kind: type[S], environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, about, default in describe_settings(kind):
        text = environ.get(about.variable)
        if text:
            values[name] = tuple(part.strip() for part in text.split(",") if part.strip()) if isinstance(default, tuple) else text
            sources[name] = about.variable
    return values, sources


def _from_file(kind: type[S], path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        tables = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}, {}
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableFile("settings file", str(path), str(error)) from None
    for table in tables:
        if table not in SECTIONS.values():
            raise UnknownSetting(table, str(path), tuple(SECTIONS.values()))
    values = tables.get(SECTIONS[kind], {})
    if not isinstance(values, dict):
        raise UnreadableFile("settings file", str(path), f"{SECTIONS[kind]} must be a table")
    known = tuple(field.name for field in msgspec.structs.fields(kind))
    for name in values:
        if name not in known:
            raise UnknownSetting(name, str(path), known)
    return values, dict.fromkeys(values, str(path))


def _about(kind: type[S], name: str) -> About:
    hint = get_type_hints(kind, include_extras=True)[name]
    return next(extra for extra in get_args(hint) if isinstance(extra, About))
