"""The errors that a user can meet: one tree, each with a stable code and an exit status. Messages are built here from facts.

Must not print or exit; the command line does that. The table in docs/reference/errors.md is generated from this module.
"""

from collections.abc import Sequence
from typing import ClassVar

REFUSED, USAGE, NOT_FOUND, CONFLICT, NO_CAPACITY, UNREACHABLE, NOT_PERMITTED = 1, 2, 3, 4, 5, 6, 7
# `weft run` passes the program's status through; its own failures before the program starts are this one.
RUN_FAILED = 125


class WeftError(Exception):
    """Base of all errors that users see: one line, and a hint that says what to do next."""

    code: ClassVar[str] = "error"
    exit_status: int = REFUSED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class BadUsage(WeftError):
    """A command line that cannot be read."""

    code = "usage"
    exit_status = USAGE

    def __init__(self, message: str, command: str) -> None:
        super().__init__(message, f"try: {command} --help")


class InvalidOption(WeftError):
    """A value that can never be right, whatever the pool holds."""

    code = "invalid_option"
    exit_status = USAGE

    def __init__(self, option: str, value: object, expected: str, hint: str | None = None) -> None:
        super().__init__(f"{option} {value}: expected {expected}", hint)


class OptionsConflict(WeftError):
    """Two options that exclude each other."""

    code = "options_conflict"
    exit_status = USAGE

    def __init__(self, first: str, second: str, hint: str) -> None:
        super().__init__(f"{first} and {second} exclude each other", hint)


class UnknownSetting(WeftError):
    """A key in the settings file that no version of this program knows."""

    code = "unknown_setting"
    exit_status = USAGE

    def __init__(self, key: str, source: str, known: Sequence[str]) -> None:
        super().__init__(f"unknown setting {key!r} in {source}", f"known settings: {', '.join(known)}")


class UnreadableFile(WeftError):
    """A file named by the user that cannot be read or parsed."""

    code = "unreadable_file"
    exit_status = NOT_FOUND

    def __init__(self, what: str, path: str, reason: str, hint: str | None = None) -> None:
        super().__init__(f"{what} {path}: {reason}", hint)


class NativePartMissing(WeftError):
    """An incomplete installation: a native file is not where it belongs."""

    code = "native_part_missing"
    exit_status = NOT_FOUND

    def __init__(self, name: str, folder: str) -> None:
        super().__init__(
            f"the native part {name} is not in {folder}",
            "install Weft again (pip install .), or point WEFT_NATIVE_DIR at the folder _native of a build",
        )


class NoDriver(WeftError):
    """The server finds no usable GPU driver."""

    code = "no_driver"
    exit_status = NOT_FOUND

    def __init__(self, reason: str) -> None:
        super().__init__(f"no GPU to serve: {reason}", "use --software-gpus N to serve software GPUs")


class NotEnoughGpus(WeftError):
    """More distinct GPUs were asked for than a server has."""

    code = "not_enough_gpus"
    exit_status = NO_CAPACITY

    def __init__(self, wanted: int, available: int) -> None:
        noun = "GPU" if available == 1 else "GPUs"
        super().__init__(f"{wanted} GPUs were asked for; the server has {available} {noun}", "ask for fewer with -n")


class GpuTooSmall(WeftError):
    """No GPU of the server, even when free, has as much memory as was asked for."""

    code = "gpu_too_small"
    exit_status = NO_CAPACITY

    def __init__(self, wanted: str, largest: str) -> None:
        super().__init__(f"{wanted} of GPU memory were asked for; the largest GPU can give {largest}", "ask for less with -m")


class SliceTooSmall(WeftError):
    """A share that leaves nothing after the context reserve."""

    code = "slice_too_small"
    exit_status = USAGE

    def __init__(self, fraction: float, smallest: str) -> None:
        super().__init__(f"-p {fraction:g} leaves less than {smallest} of usable GPU memory", "ask for a larger share")


class NoCapacity(WeftError):
    """The server could serve this, but not now."""

    code = "no_capacity"
    exit_status = NO_CAPACITY

    def __init__(self, wanted: str, reasons: Sequence[str]) -> None:
        super().__init__(f"no room for {wanted}: {'; '.join(reasons)}", "wait until a lease ends, or ask for less")


class ServerBusy(WeftError):
    """A bound of the server (connections, sessions) is reached."""

    code = "server_busy"
    exit_status = NO_CAPACITY

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"the server already holds {limit} {what}", "try again later")


class Unreachable(WeftError):
    """No configured server could be used; every attempt is kept with its reason."""

    code = "unreachable"
    exit_status = UNREACHABLE

    def __init__(self, attempts: Sequence[tuple[str, str]]) -> None:
        tried = "; ".join(f"{address}: {reason}" for address, reason in attempts)
        super().__init__(f"no server can be reached: {tried}", "check --server, or start one with `weft serve`")
        self.attempts = tuple(attempts)


class PathUnavailable(WeftError):
    """A path was forced that the two ends cannot use."""

    code = "path_unavailable"
    exit_status = UNREACHABLE

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"the path {path} cannot be used: {reason}", "leave out --path, or use --path tcp")


class WrongToken(WeftError):
    """The server did not accept the token."""

    code = "wrong_token"
    exit_status = NOT_PERMITTED

    def __init__(self, given: bool) -> None:
        what = "the token is wrong" if given else "the server asks for a token"
        super().__init__(what, "pass the server's token with --token-file")


class TokenNeeded(WeftError):
    """A server that can be reached from other machines must have a token."""

    code = "token_needed"
    exit_status = USAGE

    def __init__(self, address: str) -> None:
        super().__init__(f"a server on {address} needs a token", "add --token-file FILE; the file is made if it is missing")


class VersionMismatch(WeftError):
    """Client and server share no version of the control protocol."""

    code = "version_mismatch"
    exit_status = CONFLICT

    def __init__(self, client: str, server: str, client_protocol: int, server_protocols: tuple[int, int]) -> None:
        oldest, newest = server_protocols
        super().__init__(
            f"client {client} speaks control protocol {client_protocol}; server {server} speaks {oldest} to {newest}",
            "install the same version of Weft on both ends",
        )


class ProtocolViolation(WeftError):
    """The other end sent something that the control protocol does not allow."""

    code = "protocol_violation"
    exit_status = REFUSED

    def __init__(self, what: str) -> None:
        super().__init__(f"the other end broke the control protocol: {what}", "is it a Weft server of this version?")


class ListenFailed(WeftError):
    """The server's address cannot be used."""

    code = "listen_failed"
    exit_status = CONFLICT

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot listen on {address}: {reason}", "choose another address with --listen; port 0 takes a free one")


class ProgramNotFound(WeftError):
    """The program to run does not exist; the status is the shell's."""

    code = "program_not_found"
    exit_status = 127

    def __init__(self, program: str) -> None:
        super().__init__(f"{program}: program not found", "check the spelling and PATH")


class ProgramNotExecutable(WeftError):
    """The program to run exists but cannot be executed; the status is the shell's."""

    code = "program_not_executable"
    exit_status = 126

    def __init__(self, program: str, reason: str) -> None:
        super().__init__(
            f"{program}: cannot be executed: {reason}", "check its mode (chmod +x), its first line and its architecture"
        )


class RuntimeInside(WeftError):
    """The program carries NVIDIA's CUDA runtime and no symbols to find it by."""

    code = "runtime_inside"
    exit_status = RUN_FAILED

    def __init__(self, program: str) -> None:
        super().__init__(
            f"{program}: is stripped and carries NVIDIA's CUDA runtime inside, which cannot be redirected",
            "relink it with `nvcc -cudart shared`, or without stripping (no -s, no strip)",
        )


class ExecutorFailed(WeftError):
    """The native executor ended without doing what it was started for."""

    code = "executor_failed"
    exit_status = REFUSED

    def __init__(self, task: str, status: int, text: str) -> None:
        super().__init__(f"{task} failed (executor exit status {status}): {text or 'no message'}")


class ServerRefusal(WeftError):
    """A refusal as it came over the wire; it keeps the server's code and text."""

    code = "refused"

    def __init__(self, code: str, message: str, hint: str | None, server: str) -> None:
        super().__init__(f"server {server}: {message}", hint)
        self.server_code = code
        self.exit_status = next((kind.exit_status for kind in all_errors() if kind.code == code), REFUSED)


def all_errors() -> list[type[WeftError]]:
    """Every class of the tree, in the order of this file."""
    return [WeftError, *WeftError.__subclasses__()]
