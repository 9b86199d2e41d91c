"""Bring a public data set into a folder: downloaded, checked, unpacked, and there only when it is whole."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from course.tools.fetch.catalogue import DATASETS, Dataset
from course.tools.fetch.download import download
from course.tools.fetch.unpack import unpack

__all__ = ["DATASETS", "fetch"]


def fetch(dataset: Dataset, into: Path, say: Callable[[str], None] = print) -> Path:
    """The folder of `dataset` in `into`, fetched unless it is there. An archive that has arrived need not come twice.

    Archives are unpacked beside the place and renamed when all went well, so that a folder of this name is a whole one;
    they are removed then. Raises ConnectionError, OSError, or ValueError for an archive that is not what it should be.
    """
    target = into / dataset.folder
    if target.exists():
        say(f"{target} is there already")
        return target
    into.mkdir(parents=True, exist_ok=True)
    archives = []
    for archive in dataset.archives:
        say(f"{archive.name} from {archive.urls[0]}")
        archives.append(into / archive.name)
        download(archive.urls, archives[-1], archive.digest, archive.max_bytes)
    staging = Path(tempfile.mkdtemp(prefix=f"{dataset.folder}.partial-", dir=into))
    try:
        for file in archives:
            unpack(file, staging, dataset.max_unpacked_bytes)
        if dataset.prepare is not None:
            dataset.prepare(staging)
        root = staging / dataset.inside
        for licence in root.parent.glob("LICENSE*"):  # what gives the right to use the data stays with it
            shutil.copy(licence, root)
        os.replace(root, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    for file in archives:
        file.unlink()
    return target
