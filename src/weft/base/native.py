"""Where the native parts are: beside this package, or in the folder that WEFT_NATIVE_DIR names."""

import os
from pathlib import Path

from weft.base.errors import NativePartMissing

EXECUTOR = "weft-executor"
SOFTWARE_GPU = "libweft-swgpu.so"
NULL_DRIVER = "libweft-nulldriver.so"
SHIM = "client/libcuda.so.1"


def native_dir() -> Path:
    override = os.environ.get("WEFT_NATIVE_DIR")
    return Path(override) if override else Path(__file__).parent.parent / "_native"


def native_file(name: str) -> Path:
    """The absolute path of one native part. Raises NativePartMissing."""
    folder = native_dir().absolute()
    path = folder / name
    if not path.is_file():
        raise NativePartMissing(name, str(folder))
    return path
