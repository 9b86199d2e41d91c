"""Download one file: go on where the last try stopped, and believe nothing but the checksum."""

import hashlib
import os
from collections.abc import Sequence
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tqdm import tqdm

BLOCK = 1 << 16
TIMEOUT = 30  # seconds without a byte
TRIES = 5  # in a row that bring nothing; a connection that drops but moves forward may drop as often as it likes


def download(urls: Sequence[str], path: Path, digest: str, max_bytes: int) -> None:
    """Leave at `path` the file whose digest is `digest` ("sha256:...", "md5:..."), unless it lies there already.

    urls: tried in order; max_bytes: an answer that goes on beyond is cut off.
    What has come is kept in `path`.partial, and the next call asks for the rest. Raises ConnectionError when no address
    answers to the end, ValueError when what came is not the file; then nothing of it is kept.
    """
    if path.is_file() and _digest(path, digest) == digest:
        return
    partial = path.with_name(path.name + ".partial")
    resumed = partial.exists()
    found = _completed(urls, partial, digest, max_bytes)
    if found != digest and resumed:  # perhaps of another version of the file than the rest: once more, from the start
        partial.unlink()
        found = _completed(urls, partial, digest, max_bytes)
    if found != digest:
        partial.unlink()
        raise ValueError(f"{path.name} arrived with the checksum {found}, not {digest}; it was not kept")
    os.replace(partial, path)


def _completed(urls: Sequence[str], partial: Path, digest: str, max_bytes: int) -> str:
    """Fill `partial` from the first address that answers to the end; its digest."""
    failures = []
    for url in urls:
        tries = 0
        while tries < TRIES:
            before = partial.stat().st_size if partial.exists() else 0
            try:
                _append(url, partial, max_bytes)
                return _digest(partial, digest)
            except HTTPError as error:
                failures.append(f"{url}: {error}")
                break  # the server has spoken; asking again would bring the same answer
            except (OSError, HTTPException) as error:
                failures.append(f"{url}: {error}")
                moved = partial.exists() and partial.stat().st_size > before
                tries = 0 if moved else tries + 1
    raise ConnectionError(f"{partial.name} could not be completed; run the same again to go on\n" + "\n".join(failures))


def _append(url: str, partial: Path, max_bytes: int) -> None:
    """One connection: from the end of `partial` to the end of the file, or from the start where a server cannot."""
    start = partial.stat().st_size if partial.exists() else 0
    headers = {"User-Agent": "frcnn_lite", **({"Range": f"bytes={start}-"} if start else {})}
    try:
        response = urlopen(Request(url, headers=headers), timeout=TIMEOUT)
    except HTTPError as error:
        if error.code == 416 and start:  # nothing is left to send: the checksum will tell whether that is true
            return
        raise
    with response:
        continued = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        if response.status == 206 and not continued:
            raise ConnectionError(f"the server sent {response.headers.get('Content-Range')}, asked from byte {start}")
        with partial.open("ab" if continued else "wb") as file:
            _copy(response, file, file.tell(), max_bytes)


def _copy(response: HTTPResponse, file: BinaryIO, start: int, max_bytes: int) -> None:
    announced = response.headers.get("Content-Length")
    total = None if announced is None else start + int(announced)
    with tqdm(total=total, initial=start, unit="B", unit_scale=True, leave=False) as bar:
        while block := response.read(BLOCK):
            if file.tell() + len(block) > max_bytes:
                file.truncate(0)
                raise ValueError(f"the answer is longer than {max_bytes:,} bytes, so it is not the file")
            file.write(block)
            bar.update(len(block))
    if total is not None and file.tell() < total:
        raise ConnectionError(f"the connection ended after {file.tell():,} of {total:,} bytes")


def _digest(path: Path, like: str) -> str:
    """The digest of a file by the algorithm of `like`."""
    algorithm = like.partition(":")[0]
    with path.open("rb") as file:
        return f"{algorithm}:{hashlib.file_digest(file, algorithm).hexdigest()}"
