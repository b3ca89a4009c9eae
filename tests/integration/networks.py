"""Two network namespaces joined by one virtual cable that can be cut; for tests of faults that loopback cannot have."""

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

NEAR_ADDRESS, FAR_ADDRESS = "10.91.0.1", "10.91.0.2"
LIMIT_S = 10


@dataclass(frozen=True)
class Cable:
    """Prefixes for commands that are to run at either end."""

    near: tuple[str, ...]
    far: tuple[str, ...]

    def cut(self) -> None:
        """From now on packets vanish; nobody is told. (The near end stays up: its packets go out and are lost.)"""
        _do(*self.far, "ip", "link", "set", "far", "down")


@contextlib.contextmanager
def two_networks() -> Iterator[Cable]:
    """Skips the test where namespaces are not allowed."""
    outer = ("unshare", "--map-root-user", "--user", "--net")
    if subprocess.run([*outer, "true"], capture_output=True, timeout=LIMIT_S).returncode != 0:
        pytest.skip("network namespaces are not allowed here")
    with _holder(outer) as near, _holder((*near, "unshare", "--net")) as far:
        far_pid = far[far.index("--target") + 1]
        for command in (
            (*near, "ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", far_pid),
            (*near, "ip", "address", "add", f"{NEAR_ADDRESS}/24", "dev", "near"),
            (*far, "ip", "address", "add", f"{FAR_ADDRESS}/24", "dev", "far"),
            (*near, "ip", "link", "set", "near", "up"),
            (*far, "ip", "link", "set", "far", "up"),
            (*near, "ip", "link", "set", "lo", "up"),
            (*far, "ip", "link", "set", "lo", "up"),
        ):
            _do(*command)
        yield Cable(near, far)


@contextlib.contextmanager
def _holder(prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """A process that keeps a namespace; yields the prefix that enters it."""
    command = [*prefix, "sh", "-c", "echo $$; exec sleep 100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            pid = process.stdout.readline().strip()
            yield ("nsenter", "--target", pid, "--user", "--net", "--preserve-credentials")
        finally:
            process.kill()


def _do(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
