"""What it costs to divide an answer over Ray, Dask, Spark or processes.

    python benches/engines.py --runs 3 --output figures.json

It generates two files of lines `key;value`, keeps them in the page cache, and starts two workers of one thread of each engine. The
program with two threads and ringfold on the engine are asked in turns, after one round that warms up, and then in the same way
ringfold and the engine's own CSV reader.
Answers are compared. Times are wall times until the answer is there, as the text that the program writes, as ringfold's own, as
tables of Arrow, or as a DataFrame of pandas; the start of workers isn't counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ringfold

ASKED: dict[str, Any] = {"by": "1", "agg": ["min:2", "mean:2", "max:2"], "header": False, "delimiter": ";"}
SHARDS = 8
Rows = list[tuple[str, float, float, float]]
# Asks a file; what it returns makes rows of the answer, which isn't timed.
Way = Callable[[str], Callable[[], Rows]]


def program(path: str) -> Callable[[], Rows]:
    """The program with two threads."""
    query = ringfold.Query(**ASKED, threads=2)
    words = [sys.executable, "-m", "ringfold", "aggregate", "-q", "-f", "tsv", *query.flags(), path]
    out = subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def rows() -> Rows:
        lines = [line.split("\t") for line in out.splitlines()[1:]]
        return [(key, float(low), float(mean), float(high)) for key, low, mean, high in lines]

    return rows


def tables(found: list[Any]) -> Callable[[], Rows]:
    """The rows of Arrow tables."""

    def rows() -> Rows:
        return [
            row
            for table in found
            for row in zip(table.column(0).to_pylist(), *(map(float, table.column(at).to_pylist()) for at in (1, 2, 3)))
        ]

    return rows


def frame(found: Any) -> Callable[[], Rows]:
    """The rows of a DataFrame of pandas."""
    return lambda: [
        (key, float(low), float(mean), float(high)) for key, low, mean, high in found.itertuples(index=False, name=None)
    ]


def answer(found: ringfold.Answer) -> Callable[[], Rows]:
    return lambda: list(found.rows(exact=False))


def processes() -> tuple[dict[str, Way], Callable[[], None]]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from ringfold import local

    pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    return {"aggregate": lambda path: answer(local.aggregate(path, **ASKED, executor=pool))}, pool.shutdown


def ray() -> tuple[dict[str, Way], Callable[[], None]]:
    import pyarrow.csv
    import ray
    import ray.data
    from ray.data.aggregate import Max, Mean, Min

    import ringfold.ray

    ray.init(address="local", num_cpus=2, log_to_driver=False, include_dashboard=False)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def own(path: str) -> Callable[[], Rows]:
        read = pyarrow.csv.ReadOptions(column_names=["key", "value"])
        data = ray.data.read_csv(path, read_options=read, parse_options=pyarrow.csv.ParseOptions(delimiter=";"))
        found = data.groupby("key").aggregate(Min("value"), Mean("value"), Max("value")).to_pandas()
        return frame(found[["key", "min(value)", "mean(value)", "max(value)"]])

    return {
        "aggregate": lambda path: answer(ringfold.ray.aggregate(path, **ASKED)),
        "shards": lambda path: tables(ray.get(ringfold.ray.shards(path, SHARDS, **ASKED))),
        "own": own,
    }, ray.shutdown


def dask() -> tuple[dict[str, Way], Callable[[], None]]:
    import dask
    import dask.dataframe
    from distributed import Client, LocalCluster

    import ringfold.dask

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="8GiB")
    client = Client(cluster)

    def own(path: str) -> Callable[[], Rows]:
        data = dask.dataframe.read_csv(path, sep=";", header=None, names=["key", "value"], blocksize="64MB")
        parts = SHARDS if "keys" in path else 1
        found = data.groupby("key").value.agg(["min", "mean", "max"], split_out=parts)
        return frame(found.reset_index().compute())

    def end() -> None:
        client.close()
        cluster.close()

    return {
        "aggregate": lambda path: answer(ringfold.dask.aggregate(path, **ASKED, client=client)),
        "shards": lambda path: tables(client.gather(ringfold.dask.shards(path, SHARDS, **ASKED, client=client))),
        "own": own,
    }, end


def spark() -> tuple[dict[str, Way], Callable[[], None]]:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as of

    import ringfold.spark

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local-cluster[2,1,6144]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.executor.memory", "6g").config("spark.sql.shuffle.partitions", str(SHARDS))
    session = builder.config("spark.sql.execution.arrow.pyspark.enabled", "true").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")

    def own(path: str) -> Callable[[], Rows]:
        data = session.read.csv(path, sep=";", schema="key string, value double")
        return tables([data.groupBy("key").agg(of.min("value"), of.avg("value"), of.max("value")).toArrow()])

    def shards(path: str) -> Callable[[], Rows]:
        # A DataFrame of pandas makes an object of Python of each decimal.
        return tables([ringfold.spark.dataframe(session, path, SHARDS, **ASKED).toArrow()])

    return {
        "aggregate": lambda path: answer(ringfold.spark.aggregate(session, path, **ASKED)),
        "shards": shards,
        "own": own,
    }, session.stop


ENGINES = {"local": processes, "ray": ray, "dask": dask, "spark": spark}


def compare(name: str, want: Rows, got: Rows) -> None:
    """Doubles of others are near; keys, least and greatest values are the same."""
    want, got = sorted(want), sorted(got)
    if len(want) != len(got):
        raise SystemExit(f"{name}: {len(got)} groups in the place of {len(want)}")
    for one, other in zip(want, got):
        if (one[0], one[1], one[3]) != (other[0], other[1], other[3]) or abs(one[2] - other[2]) > 1e-3:
            raise SystemExit(f"{name}: {other} in the place of {one}")


def measured(ways: dict[str, Way], path: str, runs: int) -> dict[str, list[float]]:
    """The seconds of each way in each round; the first round isn't counted."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    want: Rows = []
    for round_ in range(runs + 1):
        for name, way in ways.items():
            begun = time.monotonic()
            rows = way(path)
            took = time.monotonic() - begun
            if round_:
                seconds[name].append(took)
                continue
            got = rows()
            want = want or got
            compare(name, want, got)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1, help="of the file with 413 keys (1)")
    parser.add_argument("--rows", type=float, default=20, help="millions in the file with many keys (20)")
    parser.add_argument("--keys", type=int, default=2_000_000, help="in that file (2,000,000)")
    parser.add_argument("--runs", type=int, default=3, help="rounds that count (3)")
    parser.add_argument("--engines", default="local,ray,dask,spark", help="those that are asked (all)")
    parser.add_argument("--output", type=Path, help="where figures go as JSON")
    parser.add_argument("--folder", type=Path, help="where the two files lie (a temporary folder)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        few, many = str(folder / "few.txt"), str(folder / "many-keys.txt")
        generate = [sys.executable, "-m", "ringfold", "generate", "-q", "-o"]
        subprocess.run([*generate, few, f"--bytes={round(args.gigabytes * 1e9)}"], check=True)
        subprocess.run([*generate, many, f"--rows={round(args.rows * 1e6)}", f"--keys={args.keys}"], check=True)
        for path in (few, many):
            ringfold.count(path)
        figures: dict[str, Any] = {"bytes": [os.path.getsize(few), os.path.getsize(many)], "processors": os.cpu_count()}
        print(
            "| engine | question | seconds | x the program | engine's own CSV reader, s | x ringfold |\n|---|---|--:|--:|--:|--:|"
        )
        for engine in args.engines.split(","):
            ways, end = ENGINES[engine]()
            try:
                for path, question, label in (
                    (few, "aggregate", "413 keys"),
                    (many, "shards", f"{args.keys:,} keys in {SHARDS} shards"),
                ):
                    if question not in ways:
                        continue
                    ours = ways[question]
                    beside = measured({"program": program, "ringfold": ours}, path, args.runs)
                    mid = statistics.median(beside["ringfold"])
                    line = f"| {engine} | {label} | {mid:.2f} | {mid / statistics.median(beside['program']):.2f} |"
                    figures[f"{engine}, {label}"] = beside
                    if "own" in ways:
                        # Not in the same rounds: an engine's reader may end the workers, and new ones start slowly.
                        beside = measured({"ringfold": ours, "own": ways["own"]}, path, args.runs)
                        mid = statistics.median(beside["own"])
                        line += f" {mid:.1f} | {mid / statistics.median(beside['ringfold']):.1f} |"
                        figures[f"{engine}, {label}, own reader"] = beside
                    print(line if "own" in ways else line + " | |", flush=True)
            finally:
                end()
        if args.output:
            args.output.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
