"""Entry point: loads only the verb that is asked for, and turns every error into one line, a hint and an exit status."""

import importlib
import os
import signal
import sys
from collections.abc import Sequence

from weft.base.errors import RUN_FAILED, WeftError

INTERRUPTED = 128 + signal.SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    is_run = arguments[:1] == ["run"]
    try:
        # `run` is on the way of every program start, and importing Typer would take longer than all the rest of it.
        module = importlib.import_module("weft.cli.run" if is_run else "weft.cli.verbs")
        status = module.main(arguments[1:] if is_run else arguments)
        assert isinstance(status, int)
        return status
    except WeftError as error:
        if _wants_trace(arguments):
            raise
        complain(error.message, error.hint)
        return run_status(error) if is_run else error.exit_status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away; keep the interpreter from complaining about it once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 128 + signal.SIGPIPE


def complain(message: str, hint: str | None = None) -> None:
    """One line, and a hint under it."""
    print(f"weft: {message}", file=sys.stderr)
    if hint:
        print(f"      {hint}", file=sys.stderr)


def run_status(error: WeftError) -> int:
    """`weft run` keeps the shell's two statuses; everything else that went wrong before the program started is 125."""
    return error.exit_status if error.exit_status in (126, 127) else RUN_FAILED


def _wants_trace(arguments: Sequence[str]) -> bool:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--debug" in arguments[:end] or bool(os.environ.get("WEFT_DEBUG"))
