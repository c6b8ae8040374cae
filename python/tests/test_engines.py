"""Answers by Ray, Dask, Spark and processes are those of the command line, byte for byte."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ringfold
from ringfold import _work, local

UNIT = 64 << 10
BY: dict[str, Any] = {
    "by": ["city", "hour"],
    "agg": ["count", "sum:price", "mean:price", "first:note", "last:note", "p50:price", "distinct:note"],
}


def rows(count: int, seed: int, has_newlines: bool) -> str:
    """Orders; where notes have newlines, some of them look like orders."""
    random_ = random.Random(seed)
    lines = ["city,hour,price,note"]
    for at in range(count):
        note = f"n{random_.randrange(50)}"
        if has_newlines and at % 400 == 0:
            # Read from its middle on, one is malformed at its end, and the other isn't.
            note = '"' + "x,1,2.5,y\n" * random_.randrange(900) + random_.choice(['"', 'x,1,2.5,z"'])
        lines.append(f"c{random_.randrange(40)},{random_.randrange(24)},{random_.randrange(10**5) / 100},{note}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("orders")
    names = []
    for at, (count, has_newlines) in enumerate([(20_000, False), (9_000, True), (100, False), (50, True)]):
        path = folder / f"{at}.csv"
        path.write_text(rows(count, at, has_newlines))
        names.append(str(path))
    return names


def by_program(files: list[str], **fields: Any) -> str:
    """What the command line prints."""
    query = ringfold.Query(**{**BY, **fields})
    words = [sys.executable, "-m", "ringfold", "aggregate", "-q", "-f", "csv", *query.flags(), *files]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def want(files: list[str]) -> str:
    return by_program(files)


def text(answer: ringfold.Answer) -> str:
    return answer.text("csv").decode()


def texts() -> Callable[[ringfold.Query, ringfold.Partial, int], str]:
    """A function that is pickled by value: workers can't import this file."""

    def text_of(query: ringfold.Query, partial: ringfold.Partial, shard: int) -> str:
        return partial.result(query).text("csv").decode()

    return text_of


def lines_of(texts: list[str]) -> list[str]:
    """Rows of shards, without their heads."""
    return sorted(line for one in texts for line in one.splitlines()[1:])


def test_files_become_units(files: list[str]) -> None:
    work = _work.units([files[0], (("far", "/data/x.csv")), files[2], files[3]], UNIT)
    parts = [one.part for one in work if one.paths == (files[0],)]
    assert len(parts) > 3 and parts == [(at + 1, len(parts)) for at in range(len(parts))]
    assert work[len(parts)] == _work.Unit(("/data/x.csv",), host="far")
    assert work[-1].paths == (files[2], files[3]) or work[-2].paths == (files[2],)


def test_by_processes(files: list[str], want: str) -> None:
    assert text(local.aggregate(files, **BY, processes=2, unit=UNIT)) == want


def test_units_that_began_within_quotes_are_read_again(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above says nothing."""
    begun = []
    real = _work.computed

    def computed(query: ringfold.Query, unit: _work.Unit) -> ringfold.Partial:
        begun.append(unit)
        return real(query, unit)

    monkeypatch.setattr(_work, "computed", computed)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        answer = local.aggregate([files[1]], **BY, executor=pool, unit=UNIT)
    assert text(answer) == by_program([files[1]])
    assert any(unit.begin is not None for unit in begun)


def test_errors_have_a_place(files: list[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text(Path(files[0]).read_text() + "x,1,many,n\n")
    with pytest.raises(ringfold.DataError) as raised:
        local.aggregate([str(bad)], **BY, processes=1, unit=UNIT)
    assert raised.value.line == 20_002 and "bad.csv" in str(raised.value)
    tabs = tmp_path / "bad.tsv"
    tabs.write_text("".join(f"k{at % 9}\t{at}\n" for at in range(20_000)) + "x\tmany\n")
    with pytest.raises(ringfold.DataError) as raised:
        local.aggregate([str(tabs)], by="1", agg="sum:2", header=False, processes=1, unit=UNIT)
    assert "bad.tsv" in str(raised.value) and raised.value.bytes is not None
    with pytest.raises(ringfold.UsageError):
        local.aggregate([], by="1")
    with pytest.raises(ringfold.FileError):
        local.aggregate([str(tmp_path / "none.csv")], **BY)


# Ray.


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    from ray.cluster_utils import Cluster

    head = {"node_ip_address": "127.0.0.1", "num_cpus": 0, "object_store_memory": 200 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        cluster.add_node(node_ip_address="127.0.0.1", num_cpus=1, object_store_memory=200 << 20)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_by_ray(files: list[str], want: str, ray_cluster: Any) -> None:
    import ray

    import ringfold.ray

    assert text(ringfold.ray.aggregate(files, **BY, unit=UNIT, fan_in=3)) == want
    made = ray.get(ringfold.ray.shards(files, 3, **BY, unit=UNIT, each=texts()))
    assert lines_of(made) == lines_of([want])


def test_errors_of_ray(files: list[str], tmp_path: Path, ray_cluster: Any) -> None:
    import ringfold.ray

    bad = tmp_path / "bad.csv"
    bad.write_text(Path(files[0]).read_text() + "x,1,many,n\n")
    with pytest.raises(ringfold.DataError) as raised:
        ringfold.ray.aggregate([str(bad)], **BY, unit=UNIT)
    assert raised.value.line == 20_002


@contextmanager
def killing(pids: Any, pause: tuple[float, float]) -> Iterator[list[int]]:
    """Kills one of the processes now and then."""
    done, killed, random_ = threading.Event(), [], random.Random(7)

    def kill() -> None:
        while not done.wait(random_.uniform(*pause)):
            victims = pids()
            if victims:
                pid = random_.choice(victims)
                try:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                except ProcessLookupError:
                    pass

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        done.set()
        thread.join()


def kills() -> int:
    """How many workers are killed: a few, or as many as `KILLS` says."""
    return int(os.environ.get("KILLS", "3"))


def test_killed_workers_of_ray(files: list[str], want: str, ray_cluster: Any) -> None:
    psutil = pytest.importorskip("psutil")
    import ringfold.ray

    def workers() -> list[int]:
        named = [(one, " ".join(one.cmdline())) for one in psutil.Process().children(recursive=True) if one.is_running()]
        return [one.pid for one, name in named if "ray::computed" in name or "ray::_merged" in name]

    until = time.monotonic() + 20 * kills()
    with killing(workers, (0.2, 1.5)) as killed:
        while len(killed) < kills() and time.monotonic() < until:
            assert text(ringfold.ray.aggregate(files, **BY, unit=UNIT, fan_in=3)) == want
    assert killed


# Dask.


@pytest.fixture(scope="module")
def dask_client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    import dask

    dask.config.set({"distributed.scheduler.allowed-failures": 100, "distributed.deploy.lost-worker-timeout": "1h"})
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_by_dask(files: list[str], want: str, dask_client: Any) -> None:
    import ringfold.dask

    assert text(ringfold.dask.aggregate(files, **BY, client=dask_client, unit=UNIT, fan_in=3)) == want
    made = dask_client.gather(ringfold.dask.shards(files, 3, **BY, client=dask_client, unit=UNIT, each=texts()))
    assert lines_of(made) == lines_of([want])


def test_killed_workers_of_dask(files: list[str], want: str, dask_client: Any) -> None:
    import ringfold.dask

    def workers() -> list[int]:
        nannies = dask_client.cluster.workers.values()
        return [one.pid for one in nannies if one.pid and one.status.name == "running"]

    until = time.monotonic() + 30 * kills()
    with killing(workers, (4, 9)) as killed:
        while len(killed) < kills() and time.monotonic() < until:
            assert text(ringfold.dask.aggregate(files, **BY, client=dask_client, unit=UNIT)) == want
    assert killed


# Spark.


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.mark.filterwarnings("ignore:PySpark does not yet")
def test_by_spark(files: list[str], want: str, spark: Any) -> None:
    import ringfold.spark

    assert text(ringfold.spark.aggregate(spark, files, **BY, unit=UNIT, fan_in=3)) == want
    frame = ringfold.spark.dataframe(spark, files, 3, by="city", agg=["count", "sum:price"], unit=UNIT)
    got = sorted((row["city"], row["count"], str(row["sum_price"])) for row in frame.collect())
    of_program = by_program(files, by="city", agg=["count", "sum:price"])
    cells = [line.split(",") for line in of_program.splitlines()[1:]]
    assert [(city, str(count), total) for city, count, total in got] == sorted(map(tuple, cells))


def test_errors_of_spark(files: list[str], tmp_path: Path, spark: Any) -> None:
    import ringfold.spark

    bad = tmp_path / "bad.csv"
    bad.write_text(Path(files[0]).read_text() + "x,1,many,n\n")
    with pytest.raises(ringfold.DataError) as raised:
        ringfold.spark.aggregate(spark, [str(bad)], **BY, unit=UNIT)
    assert raised.value.line == 20_002
