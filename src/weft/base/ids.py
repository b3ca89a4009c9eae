"""Names of things, each with its own type; new ones come from the operating system's random source."""

import secrets
from typing import NewType

GpuUuid = NewType("GpuUuid", str)
LeaseId = NewType("LeaseId", str)
SessionId = NewType("SessionId", str)

SECRET_BYTES = 32


def new_lease_id() -> LeaseId:
    return LeaseId(f"lease-{secrets.token_hex(6)}")


def new_secret() -> bytes:
    return secrets.token_bytes(SECRET_BYTES)


def new_socket_name() -> str:
    """Name of an abstract Unix socket, without the leading NUL; it cannot be guessed and leaves nothing in the file system."""
    return f"weft-{secrets.token_hex(12)}"
