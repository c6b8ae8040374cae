"""Partials: bytes that go anywhere, and merge to the answer of one run."""

from __future__ import annotations

import multiprocessing
import pickle
import random
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import ringfold
from ringfold import Partial, Query

QUERY = Query(by="kind", agg={"n": "count", "total": "sum:price", "names": "distinct:key"}, sort="total:desc", top=2)


@pytest.fixture
def plain(large: Path, tmp_path: Path) -> Path:
    """The same records without quotes, so that ranges are cut anywhere."""
    path = tmp_path / "plain.tsv"
    path.write_bytes(large.read_bytes().replace(b'"c, ""d"""', b"c").replace(b",", b"\t"))
    return path


def part(path: Path, number: int) -> Partial:
    return QUERY.partial(path, range=(number, 4))


def test_parts_make_the_answer_of_one_run(plain: Path) -> None:
    want = QUERY.aggregate(plain).text()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        parts = list(pool.map(part, [plain] * 4, range(1, 5)))
    random.Random(3).shuffle(parts)
    merged = ringfold.merge([ringfold.merge(parts[:2]), *parts[2:]])
    assert merged.result(QUERY).text() == want
    assert merged.columns == ["kind", "n", "total", "names"]
    assert merged.counts["rows"] == 30_000
    assert merged.result().columns == merged.columns
    renamed = merged.result(Query(names="a,b,c,d", sort="c:desc", top=1))
    assert renamed.columns == ["a", "b", "c", "d"]
    assert list(renamed) == list(merged.result(QUERY))[:1]


def test_bytes_travel(plain: Path) -> None:
    partial = QUERY.partial(plain)
    data = partial.to_bytes()
    assert partial.nbytes == len(data)
    for taken in (data, bytearray(data), memoryview(data)):
        assert Partial.from_bytes(taken).result(QUERY).text() == partial.result(QUERY).text()
    assert Partial.from_bytes(data).to_bytes() is data
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(partial, protocol)).to_bytes() == data
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(partial, 5, buffer_callback=buffers.append)
    assert len(pickled) < 200
    assert [len(buffer.raw()) for buffer in buffers] == [len(data)]
    assert pickle.loads(pickled, buffers=[data]).to_bytes() is data
    saved = plain.with_name("saved.part")
    saved.write_bytes(data)
    assert Partial.from_bytes(saved.read_bytes()).query == partial.query


def test_what_cannot_be_merged(plain: Path) -> None:
    one, two = part(plain, 1), part(plain, 2)
    with pytest.raises(ringfold.IncompleteError, match="allow_gaps") as raised:
        one.result(QUERY)
    assert isinstance(pickle.loads(pickle.dumps(raised.value)), ringfold.IncompleteError)
    with pytest.warns(ringfold.Notice):
        assert len(one.result(QUERY, allow_gaps=True)) == 2
    with pytest.raises(ringfold.Error):
        ringfold.merge([one, two, one])
    with pytest.raises(ringfold.Error):
        ringfold.merge([one, QUERY.replace(agg="count").partial(plain, range=(2, 4))])
    with pytest.raises(ringfold.UsageError):
        QUERY.partial(plain, range=(5, 4))
    with pytest.raises(ringfold.UsageError):
        ringfold.merge([])


def test_damage_is_found(plain: Path) -> None:
    data = QUERY.partial(plain).to_bytes()
    draw = random.Random(5)
    for _ in range(200):
        at = draw.randrange(len(data))
        damaged = data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
        with pytest.raises(ringfold.DataError):
            Partial.from_bytes(damaged).check()
    for damaged in (b"", b"x", data[:-1], data[: len(data) // 2]):
        with pytest.raises(ringfold.DataError):
            Partial.from_bytes(damaged)


def test_parts_that_began_within_quotes(files: Path) -> None:
    Path("trips.csv").write_text('city,route\nBern,"Kiel,Oslo\nOslo,Rom\nRom,Bern"\nKiel,none\n')
    query = Query(by="city")
    parts = {number: query.partial("trips.csv", range=(number, 2)) for number in (1, 2)}
    with pytest.raises(ringfold.WrongPartsError) as raised:
        ringfold.merge(parts.values())
    error = pickle.loads(pickle.dumps(raised.value))
    assert error.parts == raised.value.parts == [(2, 2, 46)]
    for number, of, begin in error.parts:
        parts[number] = query.partial("trips.csv", range=(number, of), begin=begin)
    assert list(ringfold.merge(parts.values()).result()) == [("Bern", 1), ("Kiel", 1)]


def test_shards_have_the_same_keys_for_every_partial(plain: Path) -> None:
    query = Query(by="key", agg=["count", "sum:price"])
    want = sorted(query.aggregate(plain))
    parts = [query.partial(plain, range=(number, 3)).split(4) for number in (1, 2, 3)]
    shards = [ringfold.merge(part[shard] for part in parts) for shard in range(4)]
    with pytest.warns(ringfold.Notice, match="only the keys of shard"):
        rows = [list(shard.result(query)) for shard in shards]
    assert all(rows)
    assert sorted(row for shard in rows for row in shard) == want
    with pytest.raises(ringfold.Error):
        parts[0][0].split(2)
    with pytest.raises(ringfold.UsageError):
        query.partial(plain).split(0)
