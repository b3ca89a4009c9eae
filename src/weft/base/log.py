"""One event per line on stderr: a fixed event name and fields. structlog is loaded only by programs that log (weft serve).

No secrets and no payloads are ever logged. Levels: error = cannot go on, warning = odd, info = per object, debug = per operation.
"""

from typing import Any, Protocol


class EventLog(Protocol):
    """What the bands below the command line need of a log. Fields are plain values, hence Any."""

    def debug(self, event: str, **fields: Any) -> Any: ...
    def info(self, event: str, **fields: Any) -> Any: ...
    def warning(self, event: str, **fields: Any) -> Any: ...
    def error(self, event: str, **fields: Any) -> Any: ...


class NullLog:
    """Swallows everything: the embedded server of `weft run` without --debug."""

    def debug(self, event: str, **fields: Any) -> None: ...
    def info(self, event: str, **fields: Any) -> None: ...
    def warning(self, event: str, **fields: Any) -> None: ...
    def error(self, event: str, **fields: Any) -> None: ...


def make_log(level: str, json_lines: bool) -> EventLog:
    import logging
    import sys

    import structlog

    renderer: Any = structlog.processors.JSONRenderer() if json_lines else structlog.processors.LogfmtRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    log: EventLog = structlog.get_logger()
    return log
