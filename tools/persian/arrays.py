"""Compressed arrays whose bytes depend on nothing but the arrays."""

import io
import zipfile
from pathlib import Path

import numpy as np


def write_arrays(path: Path, **arrays: object) -> None:
    """Write what `numpy.load` reads; unlike `numpy.savez`, without the time of writing."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, values in arrays.items():
            data = io.BytesIO()
            np.save(data, np.asarray(values))
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), data.getvalue(), zipfile.ZIP_DEFLATED, 9)
