"""The server's shared secret: a line in a file that only its owner can read."""

import ipaddress
import os
import secrets
from pathlib import Path

from weft.base.errors import TokenNeeded, UnreadableFile


def server_token(token_file: str, host: str) -> str | None:
    """The token of the file, which is made (mode 0600) if missing. Without a file: None on loopback, else TokenNeeded."""
    if not token_file:
        if not is_loopback(host):
            raise TokenNeeded(host)
        return None
    path = Path(token_file)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return read_token(token_file)
    except OSError as error:
        raise UnreadableFile("token file", token_file, error.strerror or str(error)) from None
    token = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    return token


def read_token(token_file: str) -> str:
    """Raises UnreadableFile."""
    try:
        token = Path(token_file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise UnreadableFile("token file", token_file, reason, "copy the file from the server") from None
    if not token:
        raise UnreadableFile("token file", token_file, "it is empty")
    return token


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
