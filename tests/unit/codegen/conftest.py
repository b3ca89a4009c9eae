"""The generator is no part of the installed package: its tests import it from the root of the tree."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
