"""All frames, those of spec/wire/frames.toml and those of the generated calls -> native/gen/wire_frames.h."""

from __future__ import annotations

from codegen.calls import call_frames, load_calls
from codegen.records import CALLS_PATH, FRAMES_PATH, SpecError, read_toml
from codegen.wire_frames import Frame, check_unique, load_frames, render_header


def all_frames() -> list[Frame]:
    frames = [*load_frames(), *call_frames()]
    check_unique(frames)
    names = {frame.name for frame in frames}
    for call in load_calls():
        if unknown := set(call.frames) - names:
            raise SpecError(f"{CALLS_PATH}: {call.name}: unknown frames {sorted(unknown)}")
    return frames


def build() -> str:
    return render_header(all_frames(), read_toml(FRAMES_PATH)["protocol"])
