"""The command tree of all verbs but `run`, on Typer; `run` is listed in it for its help."""

import importlib
import sys
from collections.abc import Sequence

import typer

from weft.base.errors import BadUsage
from weft.cli import run as run_verb

# Verb: module. Each module has `app`, a Typer with its command (or, for a noun, its verbs).
VERBS = {
    "serve": "weft.cli.serve",
    "gpus": "weft.cli.gpus",
    "replay": "weft.cli.replay",
    "config": "weft.cli.config",
    "version": "weft.cli.version",
}


def main(arguments: Sequence[str]) -> int:
    """Raises WeftError, KeyboardInterrupt."""
    verb = next((argument for argument in arguments if argument in VERBS), None)
    try:
        status = make_root(verb)(list(arguments) or ["--help"], prog_name="weft", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        # Usage errors of the library; their class has moved between modules over the years.
        if not hasattr(error, "format_message"):
            raise
        raise BadUsage(" ".join(str(error.format_message()).split()), f"weft {verb}" if verb else "weft") from None
    return status if isinstance(status, int) else 0


def make_root(verb: str | None) -> typer.Typer:
    """The tree with only `verb` in it, or with all."""
    root = typer.Typer(
        name="weft",
        help="Run unmodified CUDA programs on slices of GPUs that are not in this machine.",
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    root.callback()(_root)
    if verb is None:
        root.command("run", help=run_verb.SUMMARY, context_settings={"ignore_unknown_options": True})(_run)
    for name in [verb] if verb else VERBS:
        module = importlib.import_module(VERBS[name])
        root.add_typer(module.app)
    return root


def _root() -> None:
    """Options come after the verb."""


def _run() -> int:
    return run_verb.main(sys.argv[2:])
