"""The build backend: scikit-build-core, behind a check that says in one line what a machine lacks.

It runs before anything is downloaded or configured, so the line is not buried in the output of CMake.
"""

import os
import shutil
import sys

from scikit_build_core import build as _backend
from scikit_build_core.build import (  # noqa: F401  (the hooks of PEP 517 and PEP 660)
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

COMPILERS = ("c++", "g++", "clang++")
LINE = "weft: no C++ compiler found; install one first: apt-get install g++   (Fedora: dnf install gcc-c++)"


def get_requires_for_build_wheel(config_settings=None):
    require_compiler()
    return _backend.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_editable(config_settings=None):
    require_compiler()
    return _backend.get_requires_for_build_editable(config_settings)


def require_compiler():
    """Ends the process with one line when no C++ compiler can be found."""
    named = os.environ.get("CXX", "").split()
    candidates = (*named[:1], *COMPILERS)
    if not any(shutil.which(name) for name in candidates):
        sys.exit(LINE)
