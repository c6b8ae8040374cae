"""What is read: files, and objects of stores by URL (anything of fsspec), which are fetched by ranges ahead of the run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from ._errors import Error, FileError, UsageError

Path = str | os.PathLike[str]
Paths = Path | Iterable[Path]
"""A path or URL, or several; files of one call are one input."""

CHUNK = 8 << 20
"""Bytes of a request."""

AHEAD = 4
"""Requests at once."""


class Chunk(NamedTuple):
    """Bytes that were asked for."""

    start: int
    end: int
    data: Future[bytes]


class Object:
    """An object of a store. What the store's library needs, such as credentials, it finds by itself."""

    def __init__(self, url: str, range: tuple[int, int] | None = None) -> None:
        self.name = url
        with self._told():
            self._fs, self._path = _found(url)
            self._state = self._look()
        self.size: int = self._state[0]
        seconds = self._state[1]
        self.written = None if seconds is None else (int(seconds), round(seconds % 1 * 1e6) * 1000)
        self._end = self.size if range is None else self.size * range[0] // range[1]
        self._next = -1
        self._chunks: list[Chunk] = []
        self._pool = ThreadPoolExecutor(AHEAD, thread_name_prefix="ringfold-fetch")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Whatever a store's library raises becomes an error with the object's name."""
        try:
            yield
        except Error:
            raise
        except Exception as error:
            why = str(error).partition("\n")[0] or type(error).__name__
            raise FileError(f"{self.name}: {why}", self.name, None, None, getattr(error, "errno", None)) from error

    def _look(self) -> tuple[int, float | None, Any]:
        """The object's state. What the library knows of it may be old."""
        self._fs.invalidate_cache(self._fs._parent(self._path))
        info = self._fs.info(self._path)
        if info["type"] == "directory" or info["size"] is None:
            raise OSError("it is a directory, or the store doesn't tell its size")
        written = None
        with contextlib.suppress(Exception):
            written = self._fs.modified(self._path).timestamp()
        return info["size"], written, info.get("ETag")

    def read_at(self, at: int, length: int) -> bytes:
        """Some of the bytes from a place on."""
        end = min(at + length, self.size)
        if at >= end:
            return b""
        is_next, found = at == self._next, self._chunk(at)
        if found is None:
            found = self._fetch(at, max(end, min(at + CHUNK, self._end)) if is_next else end)
        self._next = min(end, found.end)
        if is_next:
            self._chunks = [chunk for chunk in self._chunks if chunk.end > at]
            last = found.end
            while last < min(self._end, at + AHEAD * CHUNK):
                ahead = self._chunk(last) or self._fetch(last, min(last + CHUNK, self._end))
                last = ahead.end
        return found.data.result()[at - found.start : end - found.start]

    def _chunk(self, at: int) -> Chunk | None:
        return next((chunk for chunk in self._chunks if chunk.start <= at < chunk.end), None)

    def _fetch(self, start: int, end: int) -> Chunk:
        def fetched() -> bytes:
            data = bytes(self._fs.cat_file(self._path, start=start, end=end))
            if len(data) != end - start:
                raise OSError(f"the store gave {len(data)} of {end - start} bytes")
            return data

        chunk = Chunk(start, end, self._pool.submit(fetched))
        self._chunks = [*self._chunks[1 - 2 * AHEAD :], chunk]
        return chunk

    def close(self) -> None:
        """Asks for no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._chunks.clear()

    def check(self) -> None:
        """Raises `FileError` where somebody wrote to it meanwhile."""
        with self._told():
            if self._look() != self._state:
                raise OSError("the object was written to while it was read")


def _found(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs

        found: tuple[Any, str] = url_to_fs(url)
        return found
    except ImportError as error:
        raise UsageError(f"{url}: {error}: pip install 'ringfold[fsspec]', and for s3:// 'ringfold[s3]'") from None
    except ValueError as error:
        raise UsageError(f"{url}: {error}") from None


File = Path | Object


def is_url(path: Path) -> bool:
    """Whether it names an object of a store."""
    return isinstance(path, str) and "://" in path


def size_of(url: str) -> int:
    """Bytes of an object."""
    found = Object(url)
    found.close()
    return found.size


def listed(paths: Paths) -> list[Path]:
    """Paths as a list."""
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


@contextlib.contextmanager
def opened(paths: Paths, range: tuple[int, int] | None = None) -> Iterator[list[File]]:
    """Files as a run takes them. `range` is the part that is read of them."""
    given = listed(paths)
    files: list[File] = []
    objects: list[Object] = []
    try:
        for path in given:
            if isinstance(path, str) and is_url(path):
                objects.append(Object(path, range if len(given) == 1 else None))
                files.append(objects[-1])
            else:
                files.append(path)
        yield files
        for one in objects:
            one.check()
    finally:
        for one in objects:
            one.close()
