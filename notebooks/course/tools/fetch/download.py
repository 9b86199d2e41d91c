"""Download one file: it stands under its name when its checksum is right, and not before."""

import hashlib
import os
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from ssl import SSLError
from urllib.error import URLError
from urllib.request import Request, urlopen

from tqdm import tqdm

BLOCK = 1 << 16
TIMEOUT = 30  # seconds without a byte


def download(urls: Sequence[str], path: Path, digest: str, max_bytes: int) -> None:
    """Leave at `path` the file whose digest is `digest` ("sha256:...", "md5:..."), unless it lies there already.

    urls: tried in order; max_bytes: a longer answer is not this file. However it ends, no part of a file stays.
    Raises ConnectionError when no address answers to the end, ValueError when what came is not the file, and OSError
    when it cannot be written.
    """
    algorithm = digest.partition(":")[0]
    if path.exists():
        with path.open("rb") as file:
            if hashlib.file_digest(file, algorithm).hexdigest() == digest.partition(":")[2]:
                return
    partial, failures = path.with_name(path.name + ".partial"), []
    try:
        for url in urls:
            try:
                found = f"{algorithm}:{_copy(url, partial, algorithm, max_bytes)}"
            except (URLError, ConnectionError, TimeoutError, SSLError, HTTPException) as error:
                failures.append(f"{url}: {error}")
                continue
            if found != digest:
                raise ValueError(f"{path.name} arrived with the checksum {found}, not {digest}; it was not kept")
            os.replace(partial, path)
            return
        raise ConnectionError(
            "\n".join([f"{path.name} could not be fetched; run the same again to try once more", *failures])
        )
    finally:
        partial.unlink(missing_ok=True)


def _copy(url: str, partial: Path, algorithm: str, max_bytes: int) -> str:
    """Write what `url` answers to `partial`; its digest in hexadecimal digits."""
    digest, done = hashlib.new(algorithm), 0
    with urlopen(Request(url, headers={"User-Agent": "frcnn_lite"}), timeout=TIMEOUT) as response:
        total = int(response.headers.get("Content-Length", 0)) or None
        with partial.open("wb") as file, tqdm(total=total, unit="B", unit_scale=True, leave=False) as bar:
            while block := response.read(BLOCK):
                done += len(block)
                if done > max_bytes:
                    raise ValueError(f"the answer is longer than {max_bytes:,} bytes, so it is not the file")
                digest.update(block)
                file.write(block)
                bar.update(len(block))
    if total is not None and done < total:
        raise ConnectionError(f"the connection ended after {done:,} of {total:,} bytes")
    return digest.hexdigest()
