"""The one rule that picks the path of a session. Pure."""

from weft.base.errors import PathUnavailable
from weft.model.path import ClientFacts, PathChoice, PathKind, ServerFacts


def choose_path(client: ClientFacts, server: ServerFacts, forced: PathKind | None = None) -> PathChoice:
    """Same host and reachable socket: shm; else tcp. A forced path that cannot work raises PathUnavailable."""
    obstacle = _shm_obstacle(client, server)
    if forced is PathKind.SHM and obstacle is not None:
        raise PathUnavailable(PathKind.SHM, obstacle)
    if forced is not None:
        return PathChoice(path=forced, reason="asked for with --path")
    if obstacle is not None:
        return PathChoice(path=PathKind.TCP, reason=obstacle)
    return PathChoice(path=PathKind.SHM, reason="client and server are on the same host")


def _shm_obstacle(client: ClientFacts, server: ServerFacts) -> str | None:
    if server.socket_name is None:
        return "the server offers no local socket"
    if not client.boot_id or client.boot_id != server.boot_id:
        return "client and server are on different hosts"
    if not client.socket_reachable:
        return "the server's local socket cannot be reached from here"
    return None
