"""`python -m codegen` writes all generated files; with --check it writes nothing and fails if one would change."""

from __future__ import annotations

import argparse
import difflib
import sys

from codegen.frames import all_frames
from codegen.opcodes import extend_lock, lock_text, read_lock
from codegen.outputs import OUTPUTS
from codegen.records import LOCK_PATH, ROOT, SpecError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m codegen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; print the patch and fail if files would change")
    arguments = parser.parse_args()
    try:
        texts = {output.path: output.text() for output in OUTPUTS}
        texts[LOCK_PATH] = lock_text(extend_lock(read_lock(), all_frames()))
    except SpecError as error:
        print(f"codegen: {error}", file=sys.stderr)
        return 1
    return check(texts) if arguments.check else write(texts)


def write(texts: dict[str, str]) -> int:
    for path, text in texts.items():
        target = ROOT / path
        if not target.exists() or target.read_text() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            print(f"wrote {path}")
    return 0


def check(texts: dict[str, str]) -> int:
    stale = 0
    for path, text in texts.items():
        target = ROOT / path
        now = target.read_text() if target.exists() else ""
        if now != text:
            stale += 1
            sys.stdout.writelines(difflib.unified_diff(now.splitlines(True), text.splitlines(True), f"a/{path}", f"b/{path}"))
    if stale:
        print(f"codegen: {stale} of {len(texts)} generated files are out of date; run: python -m codegen", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
