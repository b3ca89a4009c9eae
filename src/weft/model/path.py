"""How frames travel between a client process and its executor, and the facts the choice rests on."""

from enum import StrEnum

import msgspec


class PathKind(StrEnum):
    SHM = "shm"
    TCP = "tcp"


class ClientFacts(msgspec.Struct, frozen=True, kw_only=True):
    boot_id: str
    # Could this client connect to the server's abstract Unix socket? False where network namespaces differ.
    socket_reachable: bool


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    boot_id: str
    socket_name: str | None


class PathChoice(msgspec.Struct, frozen=True, kw_only=True):
    path: PathKind
    reason: str
