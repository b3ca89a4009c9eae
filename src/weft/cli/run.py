"""`weft run`: a program on a slice of a GPU. Only reads the command line; weft.session does the work."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from weft import __version__
from weft.base.errors import BadUsage, InvalidOption
from weft.base.log import NullLog, make_log
from weft.base.settings import RunSettings, load_settings
from weft.base.units import MIB, parse_address, parse_bytes
from weft.model.gpu import SliceRequest
from weft.session.run import RunPlan, run
from weft.session.signals import Interrupted

SUMMARY = "Run a program on slices of GPUs. Without a server, an embedded one with a software GPU serves it."


class RunParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadUsage(message, "weft run")


def main(arguments: Sequence[str]) -> int:
    """Returns the program's exit status. Raises WeftError for whatever goes wrong before it starts."""
    options = make_parser().parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise BadUsage("no program was given", "weft run")
    flags = {
        "server": tuple(options.server) if options.server else None,
        "token_file": options.token_file,
        "path": options.path,
        "timeout_s": options.timeout,
    }
    settings = load_settings(RunSettings, flags).values
    check_settings(settings)
    plan = RunPlan(
        settings=settings,
        request=parse_request(options.gpus, options.fraction, options.memory),
        command=command,
        version=__version__,
        stats=options.stats,
        trace=options.trace,
        record=options.record,
    )
    log = make_log("debug", json_lines=False) if options.debug else NullLog()
    try:
        return run(plan, log, say=lambda line: print(f"weft: {line}", file=sys.stderr))
    except Interrupted as interrupted:
        return 128 + interrupted.number


def make_parser() -> RunParser:
    parser = RunParser(
        prog="weft run", description=SUMMARY, allow_abbrev=False, usage="weft run [options] [--] program [argument...]"
    )
    add = parser.add_argument
    add("-n", "--gpus", default="1", metavar="N", help="number of GPUs (1)")
    add(
        "-p",
        "--fraction",
        metavar="F",
        help="share of each GPU's memory, greater than 0 and at most 1; without -p and -m GPUs are whole",
    )
    add("-m", "--memory", metavar="SIZE", help="memory of each GPU, in MiB or with a unit such as 4GiB")
    add("--server", action="append", metavar="HOST:PORT", help="server to ask for a lease; may be given several times")
    add("--token-file", metavar="FILE", help="file with the server's token")
    add("--path", metavar="PATH", help="shm or tcp; chosen by itself if not given")
    add("--timeout", metavar="S", help="seconds to reach a server, and of silence until a session counts as lost (5)")
    add("--stats", action="store_true", help="say afterwards which GPU served the program, and what crossed")
    add("--trace", default="", metavar="FILE", help="write each driver call with its time to this file")
    add("--record", default="", metavar="FILE", help="write the call stream to this file, for weft replay")
    add("--debug", action="store_true", help="log events, and show a traceback on errors")
    add("command", nargs=argparse.REMAINDER, metavar="program [argument...]", help="the program and its arguments")
    return parser


def parse_request(gpus: str, fraction: str | None, memory: str | None) -> SliceRequest:
    """Raises InvalidOption for text that is no number; the ranges are checked by the placement."""
    return SliceRequest(
        gpus=_parse_gpus(gpus),
        fraction=None if fraction is None else _parse_fraction(fraction),
        memory_bytes=None if memory is None else _parse_memory(memory),
    )


def check_settings(settings: RunSettings) -> None:
    for address in settings.server:
        try:
            parse_address(address)
        except ValueError:
            raise InvalidOption("--server", address, "host:port") from None
    if not 0.1 <= settings.timeout_s <= 3600:
        raise InvalidOption("--timeout", settings.timeout_s, "seconds from 0.1 to 3600")


def _parse_gpus(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidOption("-n", text, "a number of GPUs") from None


def _parse_fraction(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidOption("-p", text, "a fraction greater than 0 and at most 1") from None


def _parse_memory(text: str) -> int:
    try:
        return parse_bytes(text, bare_unit_bytes=MIB)
    except ValueError:
        raise InvalidOption("-m", text, "a size in MiB, or with a unit such as 4GiB") from None
