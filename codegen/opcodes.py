"""spec/wire/opcodes.lock: every opcode that was ever given out. Numbers are never changed and never used again."""

from __future__ import annotations

from codegen.records import LOCK_PATH, ROOT, SpecError
from codegen.wire_frames import Frame

HEAD = "# Opcodes given out: NUMBER NAME. Append-only; a frame that is gone keeps its line. Kept by: python -m codegen\n"


def read_lock() -> dict[int, str]:
    path = ROOT / LOCK_PATH
    if not path.exists():
        return {}
    lines = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {int(number): name for number, name in lines}


def extend_lock(locked: dict[int, str], frames: list[Frame]) -> dict[int, str]:
    """The lock with new frames added; refuses a frame that changed its number or took one that was used before."""
    numbers = {name: number for number, name in locked.items()}
    for frame in frames:
        if locked.get(frame.opcode, frame.name) != frame.name:
            raise SpecError(f"opcode {frame.opcode} of {frame.name} belongs to {locked[frame.opcode]} ({LOCK_PATH})")
        if numbers.get(frame.name, frame.opcode) != frame.opcode:
            raise SpecError(f"{frame.name} has opcode {numbers[frame.name]} for ever, not {frame.opcode} ({LOCK_PATH})")
    return {**locked, **{frame.opcode: frame.name for frame in frames}}


def lock_text(locked: dict[int, str]) -> str:
    return HEAD + "".join(f"{number} {name}\n" for number, name in sorted(locked.items()))
