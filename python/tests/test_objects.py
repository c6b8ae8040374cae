"""Objects of stores are read as files are: in memory, in a folder, and of a local S3 server."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ringfold
from ringfold import _objects, local

fsspec = pytest.importorskip("fsspec", reason="fsspec isn't installed")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

ASKED: dict[str, Any] = {"by": ["key", "kind"], "agg": ["count", "sum:price", "first:qty", "last:qty"]}


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """A bucket of a local server, which the store's library finds by its own settings."""
    pytest.importorskip("s3fs", reason="s3fs isn't installed")
    server = pytest.importorskip("moto.server", reason="moto isn't installed").ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    own = {"key": "a", "secret": "b", "endpoint_url": f"http://{host}:{port}"}
    with pytest.MonkeyPatch.context() as patch:
        # This process has read the settings, those that it starts do so.
        patch.setitem(fsspec.config.conf, "s3", own)
        for name, value in own.items():
            patch.setenv(f"FSSPEC_S3_{name.upper()}", value)
        fsspec.filesystem("s3").mkdir("bucket")
        yield "s3://bucket"
    server.stop()


@pytest.fixture(params=["memory", "file", "s3"])
def put(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, bytes], str]:
    """Makes an object; returns its URL."""
    folder = {"memory": "memory://folder", "file": f"file://{tmp_path}"}.get(request.param)
    folder = folder or request.getfixturevalue("s3")

    def made(name: str, data: bytes) -> str:
        url = f"{folder}/{name}"
        with fsspec.open(url, "wb") as file:
            file.write(data)
        return url

    return made


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Small requests, and a list of them."""
    made: list[tuple[int, int]] = []
    fetch = _objects.Object._fetch

    def fetched(self: _objects.Object, start: int, end: int) -> _objects.Chunk:
        made.append((start, end))
        return fetch(self, start, end)

    monkeypatch.setattr(_objects, "CHUNK", 50_000)
    monkeypatch.setattr(_objects.Object, "_fetch", fetched)
    return made


@pytest.mark.filterwarnings("ignore:the column `estimates`")
def test_an_object_is_a_file(put: Callable[[str, bytes], str], large: Path, requests: list[tuple[int, int]]) -> None:
    url = put("large.csv", large.read_bytes())
    want = ringfold.aggregate(large, **ASKED).text()
    assert ringfold.aggregate(url, **ASKED).text() == want
    # Once it is read on, in requests of a size; the head and the end twice.
    assert sum(end - start for start, end in requests) < large.stat().st_size + 100_000
    requests.clear()
    assert ringfold.aggregate(url, **ASKED, block_size="16K").text() == want
    assert sum(end - start == 50_000 for start, end in requests) >= 7
    assert sum(end - start for start, end in requests) < large.stat().st_size + 100_000
    assert ringfold.aggregate([url, large], **ASKED).counts["rows"] == 60_000
    assert ringfold.count(url) == ringfold.count(large)
    assert list(ringfold.describe(url)) == list(ringfold.describe(large))
    assert ringfold.Query(**ASKED).explain(url)
    # Files that lie in a folder of the same name aren't meant.
    compressed = put("large.csv.gz", gzip.compress(large.read_bytes()))
    assert ringfold.aggregate(compressed, **ASKED).text() == want


def test_parts_of_an_object(put: Callable[[str, bytes], str], large: Path, requests: list[tuple[int, int]]) -> None:
    url = put("parts.csv", large.read_bytes())
    query = ringfold.Query(**ASKED, threads=2, block_size="16K")
    parts = []
    for part in range(1, 8):
        requests.clear()
        parts.append(query.partial(url, range=(part, 7)))
        # Head, end and the part, not the whole.
        assert sum(end - start for start, end in requests) < large.stat().st_size // 7 + 250_000
    merged = ringfold.merge(parts)
    assert merged.result(query).text() == query.aggregate(large).text()
    with pytest.raises(ringfold.Error, match="part 3 of 7"):
        ringfold.merge([*parts, parts[2]])


@pytest.mark.parametrize("put", ["file", "s3"], indirect=True)
def test_by_processes(put: Callable[[str, bytes], str], large: Path) -> None:
    urls = [put("one.csv", large.read_bytes()), put("two.csv.gz", gzip.compress(large.read_bytes()))]
    answer = local.aggregate(urls, **ASKED, unit=100_000, processes=2)
    assert answer.text() == ringfold.aggregate([large, large], **ASKED).text()


def test_errors_have_the_place(put: Callable[[str, bytes], str]) -> None:
    url = put("bad.csv", b"city,price\nBern,1\nOslo,many\n")
    with pytest.raises(ringfold.DataError) as raised:
        ringfold.aggregate(url, by="city", agg="sum:price")
    assert (raised.value.file, raised.value.bytes, raised.value.line) == (url, (18, 27), 3)
    with pytest.raises(ringfold.FileError, match=r"nothing\.csv") as missing:
        ringfold.aggregate(url.replace("bad", "nothing"), by="city")
    assert missing.value.file == url.replace("bad", "nothing")
    with pytest.raises(ringfold.FileError):
        ringfold.aggregate(url.rpartition("/")[0], by="city")


def test_what_a_store_does_wrong(
    put: Callable[[str, bytes], str], large: Path, monkeypatch: pytest.MonkeyPatch, requests: list[tuple[int, int]]
) -> None:
    url = put("wrong.csv", large.read_bytes())
    fetch = _objects.Object._fetch
    done: list[str] = []

    def rewritten(self: _objects.Object, start: int, end: int) -> _objects.Chunk:
        if start > 300_000 and not done:
            done.append(put("wrong.csv", large.read_bytes() + b"k,a,1,1\n"))
        return fetch(self, start, end)

    with monkeypatch.context() as patch:
        patch.setattr(_objects.Object, "_fetch", rewritten)
        with pytest.raises(ringfold.FileError, match="written to while it was read"):
            ringfold.aggregate(url, **ASKED, block_size="16K")

    def failing(self: _objects.Object, start: int, end: int) -> _objects.Chunk:
        if start > 300_000:
            raise PermissionError("the credentials have expired\nmore of it")
        return fetch(self, start, end)

    monkeypatch.setattr(_objects.Object, "_fetch", failing)
    with pytest.raises(ringfold.FileError, match=r"wrong\.csv: byte .*the credentials have expired") as raised:
        ringfold.aggregate(url, **ASKED, block_size="16K")
    assert "\n" not in str(raised.value) and raised.value.bytes is not None


def test_urls_of_no_store() -> None:
    with pytest.raises(ringfold.UsageError, match=r"nowhere://a\.csv"):
        ringfold.aggregate("nowhere://a.csv", by="city")
    assert not _objects.is_url(Path("s3://bucket/a.csv")) and os.fspath(Path("a")) == "a"
