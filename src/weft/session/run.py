"""`weft run` from the lease to the program's exit status: lease, path, program, report."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from weft.base.errors import UnreadableFile, WeftError
from weft.base.log import EventLog
from weft.base.native import SHIM, native_file
from weft.base.settings import RunSettings
from weft.model.gpu import SliceRequest
from weft.model.path import PathChoice, PathKind
from weft.placement.fractions import check_request
from weft.placement.path import choose_path
from weft.session.environment import Observers, SessionEndpoint, program_environment
from weft.session.executable import Executable, inspect_program, preloads
from weft.session.grant import Grant, open_grant
from weft.session.program import find_program, run_program
from weft.session.report import report_lines
from weft.session.signals import Interrupted, SignalPipe
from weft.session.stats import SessionStats, StatsPage


@dataclass(frozen=True)
class RunPlan:
    """What the command line asked for. trace, record: files that the program's shim writes; empty: none."""

    settings: RunSettings
    request: SliceRequest
    command: Sequence[str]
    version: str
    stats: bool = False
    trace: str = ""
    record: str = ""


def run(plan: RunPlan, log: EventLog, say: Callable[[str], None]) -> int:
    """Returns the program's status (128+n after a signal). Raises a WeftError for whatever goes wrong before it starts."""
    check_request(plan.request)
    for path in (plan.trace, plan.record):
        _check_writable(path)
    find_program(plan.command[0])
    executable = inspect_program(plan.command[0])
    with SignalPipe() as signals:
        try:
            return anyio.run(_run, plan, executable, signals, log, say)
        except BaseExceptionGroup as group:
            raise sole_error(group) from None


def sole_error(error: BaseException) -> BaseException:
    """Task groups wrap what happens in them; the first error of ours inside, else the first of all, is what happened."""
    while isinstance(error, BaseExceptionGroup):
        inner = [leaf for leaf in error.exceptions if isinstance(leaf, WeftError | Interrupted)]
        error = (inner or error.exceptions)[0]
    return error


async def _run(plan: RunPlan, executable: Executable, signals: SignalPipe, log: EventLog, say: Callable[[str], None]) -> int:
    async with anyio.create_task_group() as tasks:
        preparing, watched = anyio.CancelScope(), anyio.Event()
        tasks.start_soon(_watch_signals, signals, preparing, watched)
        async with open_grant(plan.settings, plan.request, plan.command[0], plan.version, log) as grant:
            forced = PathKind(plan.settings.path) if plan.settings.path else None
            choice = choose_path(grant.client_facts, grant.server_facts, forced)
            log.info("path_chosen", path=choice.path.value, reason=choice.reason, server=grant.server)
            preparing.cancel()
            await watched.wait()
            status, stats = await _run_program(plan, executable, grant, choice, signals)
    # Said after the lease has ended, so that nothing of ours mixes with the program's last words.
    if plan.stats:
        for line in report_lines(grant.slices, grant.server, choice, stats):
            say(line)
    return status


async def _watch_signals(signals: SignalPipe, preparing: anyio.CancelScope, watched: anyio.Event) -> None:
    with preparing:
        await signals.interrupt()
    watched.set()


async def _run_program(
    plan: RunPlan, executable: Executable, grant: Grant, choice: PathChoice, signals: SignalPipe
) -> tuple[int, SessionStats]:
    endpoint = SessionEndpoint(
        address=grant.address,
        socket_name=grant.server_facts.socket_name,
        path=choice.path,
        secret=grant.secret,
        timeout_s=plan.settings.timeout_s,
    )
    page = StatsPage()
    try:
        observers = Observers(stats=page.location, trace=_absolute(plan.trace), record=_absolute(plan.record))
        client_dir = str(native_file(SHIM).parent)
        environ = program_environment(os.environ, client_dir, endpoint, observers, preloads(client_dir, executable))
        status = await run_program(plan.command, environ, signals)
        return status, page.read()
    finally:
        page.close()


def _absolute(path: str) -> str:
    return str(Path(path).absolute()) if path else ""


def _check_writable(path: str) -> None:
    if not path:
        return
    try:
        Path(path).open("ab").close()
    except OSError as error:
        raise UnreadableFile("output file", path, error.strerror or str(error)) from None
