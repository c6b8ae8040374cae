"""Threads share queries, answers and partials, and do so without the interpreter's lock where Python has none."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

import ringfold
from ringfold import Query

T = TypeVar("T")

QUERY = Query(by=["key", "kind"], agg={"n": "count", "total": "sum:price", "mean": "mean(qty)"}, threads=2)
ROUNDS = 5


def at_once(*works: Callable[[], T], threads: int = 8) -> list[T]:
    """What functions give, in turn one for each thread. All start together."""
    barrier = threading.Barrier(threads, timeout=60)

    def started(number: int) -> T:
        barrier.wait()
        return works[number % len(works)]()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(started, range(threads)))


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python can't be without its lock")
def test_the_import_leaves_the_lock_off(files: Path) -> None:
    code = """if True:
        import sys, ringfold
        answer = ringfold.aggregate("orders.csv", by="city")
        print(len(list(answer)), len(answer.text("arrow")) > 0, sys._is_gil_enabled())
    """
    # With -W error a module that has the lock put on is an error.
    command = [sys.executable, "-W", "error", "-c", code]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout
    assert told.split() == [b"3", b"True", b"False"]


def test_a_query_is_shared(large: Path) -> None:
    want = QUERY.aggregate(large).text()
    assert at_once(lambda: QUERY.aggregate(large).text()) == [want] * 8
    replaced = at_once(lambda: hash(QUERY.replace(top=3)), lambda: hash(pickle.loads(pickle.dumps(QUERY.replace(top=3)))))
    assert len(set(replaced)) == 1


def test_an_answer_is_shared(large: Path) -> None:
    first = QUERY.aggregate(large)
    want = {form: first.text(form) for form in ("csv", "ndjson", "arrow")}
    rows = list(first)
    for _ in range(ROUNDS):
        # Types and the order of rows aren't known before somebody asks.
        answer = QUERY.aggregate(large)

        def rows_are_right(answer: ringfold.Answer = answer) -> bool:
            return list(answer) == rows and len(answer) == len(rows)

        def texts_are_right(answer: ringfold.Answer = answer) -> bool:
            return all(answer.text(form) == text for form, text in want.items())

        def forms_are_right(answer: ringfold.Answer = answer) -> bool:
            capsules = answer.__arrow_c_stream__(), answer.__arrow_c_schema__(), answer.doubles().__arrow_c_stream__()
            return None not in capsules and answer.columns == first.columns and answer.counts == first.counts

        assert all(at_once(rows_are_right, texts_are_right, forms_are_right))


def test_each_row_goes_to_one_thread(large: Path) -> None:
    answer = QUERY.aggregate(large)
    want = list(answer)
    place = {row[:2]: at for at, row in enumerate(want)}
    for _ in range(ROUNDS):
        rows = answer.rows()
        taken = at_once(lambda rows=rows: list(rows))  # type: ignore[misc]
        for of_thread in taken:
            places = [place[row[:2]] for row in of_thread]
            assert places == sorted(places)
        assert sorted((row for of_thread in taken for row in of_thread), key=lambda row: place[row[:2]]) == want
        assert next(rows, None) is None


def test_partials_are_shared(large: Path) -> None:
    query = QUERY.replace(by="key")
    want = query.aggregate(large).text()
    partial = query.partial(large)
    size, data = partial.nbytes, partial.to_bytes()
    shards = [shard.to_bytes() for shard in partial.split(3)]

    def merged() -> bool:
        return ringfold.merge([partial]).result(query).text() == want == partial.result(query).text()

    def divided() -> bool:
        again = partial.split(3)
        return [shard.to_bytes() for shard in again] == shards and ringfold.merge(again).result(query).text() == want

    def looked_at() -> bool:
        partial.check()
        receipt, travelled = partial.receipt(), pickle.loads(pickle.dumps(partial, 5))
        return (travelled.to_bytes(), travelled.counts, receipt.counts) == (data, partial.counts, partial.counts)

    for _ in range(ROUNDS):
        assert all(at_once(merged, divided, looked_at))
    assert (partial.nbytes, partial.to_bytes()) == (size, data)


def test_one_run_is_cancelled_beside_others(large: Path, tmp_path: Path) -> None:
    want = QUERY.aggregate(large).text()
    # A pipe that goes on for ever.
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(writer, b"a,1\nb,2\n" * 1_000)

    def fails(done: int, total: int | None) -> None:
        raise RuntimeError("enough")

    def cancelled() -> bytes:
        with pytest.raises(RuntimeError, match="enough"):
            ringfold.aggregate(tmp_path / "pipe", by=1, delimiter=",", header=False, progress=fails)
        return want

    try:
        for _ in range(ROUNDS):
            assert at_once(cancelled, lambda: QUERY.aggregate(large).text()) == [want] * 8
    finally:
        os.close(writer)
