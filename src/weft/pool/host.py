"""Facts about this host that the choice of a path needs, and sockets set up the way Weft wants them."""

import socket
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Differs between hosts and boots; equal in all containers of one host. Empty if unknown, which matches nothing."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def abstract_address(name: str) -> str:
    return "\0" + name


def can_connect_socket(name: str) -> bool:
    """False when the socket belongs to another network namespace, or is gone."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(abstract_address(name))
        except BlockingIOError:
            return True  # its backlog is full: it is there
        except OSError:
            return False
    return True


def tune_tcp(sock: socket.socket) -> None:
    """No delay; a peer that vanished without a word is noticed within about 20 s."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 8)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 4)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
