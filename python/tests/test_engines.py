"""Answers by Ray, Dask, Spark and processes are those of the command line, byte for byte."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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


def texts() -> Callable[[ringfold.Answer, int], str]:
    """A function that is pickled by value: workers can't import this file."""

    def text_of(answer: ringfold.Answer, _: int) -> str:
        return answer.text("csv").decode()

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


def test_processes_have_the_environment_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("one", "two"):
        monkeypatch.setenv("RINGFOLD_TEST", value)
        with local._pool(None, 1) as pool:
            assert pool.submit(os.getenv, "RINGFOLD_TEST").result() == value


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


def test_what_shards_cannot_say() -> None:
    for name, value in (("top", 3), ("pivot", "hour"), ("total", True), ("fill", "hour")):
        with pytest.raises(ringfold.UsageError, match=f"`{name}` is of all keys"):
            _work.asked_of_shards("city", "count", {name: value})


# Ray.


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Any]:
    # Ray reads it when it is imported. Without it nodes take the host's own address, which may not reach them.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    ray = pytest.importorskip("ray")
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
    own = [node["NodeID"] for node in ray_cluster_nodes()]
    missing = str(tmp_path / "none.csv")
    with pytest.raises(ringfold.FileError) as lacked:
        ringfold.ray.aggregate([files[0], (own[0], missing)], **BY, unit=UNIT)
    assert socket.gethostname() in str(lacked.value) and missing in str(lacked.value)
    with pytest.raises(ValueError, match="0 nodes of Ray are called 'nobody'"):
        ringfold.ray.aggregate([("nobody", files[0])], **BY)


def ray_cluster_nodes() -> list[dict[str, Any]]:
    """Those that tasks may run on."""
    import ray

    return [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]


def test_files_of_nodes_of_ray(files: list[str], want: str, ray_cluster: Any) -> None:
    import ringfold.ray

    own = [node["NodeID"] for node in ray_cluster_nodes()]
    placed = [(own[at % len(own)], path) for at, path in enumerate(files)]
    assert text(ringfold.ray.aggregate(placed, **BY, unit=UNIT)) == want


def killed_process(pids: list[int], random_: random.Random) -> bool:
    """Kills one of them."""
    try:
        os.kill(random_.choice(pids), signal.SIGKILL)
    except (IndexError, ProcessLookupError):
        return False
    return True


@contextmanager
def killing(kill: Callable[[random.Random], bool], pause: tuple[float, float]) -> Iterator[list[int]]:
    """Kills something now and then. The list has a number for each that was killed."""
    killed: list[int] = []
    done, random_ = threading.Event(), random.Random(7)

    def go_on() -> None:
        while not done.wait(random_.uniform(*pause)):
            if kill(random_):
                killed.append(len(killed))

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield killed
    finally:
        done.set()
        thread.join()


def kills() -> int:
    """How many workers are killed, and as many nodes: a few, or as many as `KILLS` says."""
    return int(os.environ.get("KILLS", "3"))


def until_killed(killed: list[int], seconds_each: int) -> Iterator[None]:
    """Rounds until enough was killed, which mustn't take for ever."""
    until = time.monotonic() + seconds_each * kills()
    while len(killed) < kills() and time.monotonic() < until:
        yield
    assert killed


def test_killed_workers_of_ray(files: list[str], want: str, ray_cluster: Any) -> None:
    psutil = pytest.importorskip("psutil")
    import ringfold.ray

    def workers() -> list[int]:
        found = []
        for one in psutil.Process().children(recursive=True):
            # It may have ended meanwhile.
            with suppress(psutil.Error):
                name = " ".join(one.cmdline())
                found += [one.pid] if "ray::computed" in name or "ray::_merged" in name else []
        return found

    with killing(lambda random_: killed_process(workers(), random_), (0.2, 1.5)) as killed:
        for _ in until_killed(killed, 20):
            assert text(ringfold.ray.aggregate(files, **BY, unit=UNIT, fan_in=3)) == want


def test_killed_nodes_of_ray(files: list[str], want: str, ray_cluster: Any) -> None:
    import ringfold.ray

    def raylet(node: Any) -> Any:
        return node.all_processes["raylet"][0].process

    def kill(random_: random.Random) -> bool:
        # The other one goes on, and another one comes after the round: only the main thread may start one.
        alive = [raylet(node).pid for node in list(ray_cluster.worker_nodes) if raylet(node).poll() is None]
        return len(alive) > 1 and killed_process(alive, random_)

    with killing(kill, (0.5, 4)) as killed:
        for _ in until_killed(killed, 40):
            assert text(ringfold.ray.aggregate(files, **BY, unit=UNIT, fan_in=3)) == want
            for node in [node for node in ray_cluster.worker_nodes if raylet(node).poll() is not None]:
                ray_cluster.add_node(node_ip_address="127.0.0.1", num_cpus=1, object_store_memory=200 << 20)
                ray_cluster.remove_node(node, allow_graceful=False)


# Dask.


@pytest.fixture(scope="module")
def dask_client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    import dask

    dask.config.set({"distributed.scheduler.allowed-failures": 100, "distributed.deploy.lost-worker-timeout": "1h"})
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
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

    with killing(lambda random_: killed_process(workers(), random_), (4, 9)) as killed:
        for _ in until_killed(killed, 30):
            assert text(ringfold.dask.aggregate(files, **BY, client=dask_client, unit=UNIT)) == want


def test_files_of_nodes_of_dask(files: list[str], want: str, tmp_path: Path, dask_client: Any) -> None:
    import ringfold.dask

    own = list(dask_client.scheduler_info()["workers"])
    placed = [(own[at % len(own)], path) for at, path in enumerate(files)]
    assert text(ringfold.dask.aggregate(placed, **BY, client=dask_client, unit=UNIT)) == want
    missing = str(tmp_path / "none.csv")
    with pytest.raises(ringfold.FileError) as lacked:
        ringfold.dask.aggregate([files[0], (own[0], missing)], **BY, client=dask_client, unit=UNIT)
    assert socket.gethostname() in str(lacked.value) and missing in str(lacked.value)


def test_killed_nodes_of_dask(files: list[str], want: str) -> None:
    distributed = pytest.importorskip("distributed")
    import dask

    import ringfold.dask

    dask.config.set({"distributed.scheduler.allowed-failures": 1000})
    with (
        distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):

        def node() -> subprocess.Popen[bytes]:
            # A worker and what starts it again, in a group of their own.
            address: str = cluster.scheduler_address
            words = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
            return subprocess.Popen(words, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        nodes = [node(), node()]

        def kill(random_: random.Random) -> bool:
            at = random_.randrange(len(nodes))
            os.killpg(nodes[at].pid, signal.SIGKILL)
            nodes[at].wait()
            nodes[at] = node()
            return True

        client.wait_for_workers(2)
        with killing(kill, (5, 12)) as killed:
            for _ in until_killed(killed, 40):
                assert text(ringfold.dask.aggregate(files, **BY, client=client, unit=UNIT)) == want
        for one in nodes:
            os.killpg(one.pid, signal.SIGKILL)
            one.wait()


# Spark.


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    # Executors start the first `python3` in PATH otherwise, which may not have ringfold.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

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
