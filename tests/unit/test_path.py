"""The rule that picks the path of a session."""

import pytest

from weft.base.errors import PathUnavailable
from weft.model.path import ClientFacts, PathKind, ServerFacts
from weft.placement.path import choose_path

SAME_HOST = ClientFacts(boot_id="b", socket_reachable=True)
SERVER = ServerFacts(boot_id="b", socket_name="weft-1")


def test_one_host_means_shared_memory() -> None:
    assert choose_path(SAME_HOST, SERVER).path is PathKind.SHM


@pytest.mark.parametrize(
    ("client", "server", "reason"),
    [
        (ClientFacts(boot_id="a", socket_reachable=False), SERVER, "different hosts"),
        (ClientFacts(boot_id="b", socket_reachable=False), SERVER, "cannot be reached"),
        (SAME_HOST, ServerFacts(boot_id="b", socket_name=None), "no local socket"),
        (ClientFacts(boot_id="", socket_reachable=True), ServerFacts(boot_id="", socket_name="weft-1"), "different hosts"),
    ],
)
def test_otherwise_tcp_with_the_reason(client: ClientFacts, server: ServerFacts, reason: str) -> None:
    choice = choose_path(client, server)
    assert choice.path is PathKind.TCP
    assert reason in choice.reason
    with pytest.raises(PathUnavailable, match=reason):
        choose_path(client, server, PathKind.SHM)


@pytest.mark.parametrize("path", list(PathKind))
def test_a_possible_path_can_be_forced(path: PathKind) -> None:
    assert choose_path(SAME_HOST, SERVER, path).path is path
