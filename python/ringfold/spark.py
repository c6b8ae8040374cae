"""On Spark: partials are rows; of many keys Spark's own shuffle brings the shards together. Executors need the wheel only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark import RDD, StorageLevel
from pyspark.sql import DataFrame, SparkSession

from ._errors import Error
from ._query import Aggregates, Columns, Query
from ._ringfold import Answer, Partial
from ._work import FAN_IN, UNIT, Files, Unit, asked, asked_of_shards, computed_shards, corrected, ended, merged, table, units

Row = tuple[int, list[Partial]]
"""The number of a unit, its receipt, and its partial or the shards of it."""


def _made(spark: SparkSession, files: Files, query: Query, unit: int, shards: int) -> RDD[Row]:
    """The rows of all units."""
    work = units(files, unit)
    if any(one.host for one in work):
        raise ValueError("Spark doesn't run a task on a host of one's choice: all executors need to see the files")

    def compute(item: tuple[int, Unit]) -> tuple[int, list[Partial] | Error]:
        try:
            return item[0], computed_shards(query, item[1], shards)
        except Error as error:
            # What is raised here is tried again, and loses its place.
            return item[0], error

    numbers = iter(range(1 << 62))

    def start(some: Sequence[Unit]) -> list[tuple[RDD[Any], int]]:
        numbered = list(zip(numbers, some))
        rows = spark.sparkContext.parallelize(numbered, len(numbered)).map(compute)
        rows.persist(StorageLevel.DISK_ONLY)
        return [(rows, number) for number, _ in numbered]

    def receipts(made: list[tuple[RDD[Any], int]]) -> list[Partial]:
        found = made[0][0].map(lambda row: (row[0], row[1] if isinstance(row[1], Error) else row[1][0])).collect()
        for _, receipt in found:
            if isinstance(receipt, Error):
                raise receipt
        return [receipt for _, receipt in found]

    made = corrected(work, start, receipts)
    # A unit that was begun again has another number, and its place among the others.
    places = {number: place for place, (_, number) in enumerate(made)}
    rows = spark.sparkContext.union(list({id(rdd): rdd for rdd, _ in made}.values()))
    rows = rows.filter(lambda row: row[0] in places).map(lambda row: (places[row[0]], row[1]))
    return rows


def _in_order(items: Iterable[tuple[int, tuple[int, Partial]]]) -> list[Partial]:
    """The partials of a partition, in the order of their units."""
    return [partial for _, partial in sorted((item for _, item in items), key=lambda item: item[0])]


def partial(
    spark: SparkSession,
    files: Files,
    by: Columns = (),
    agg: Aggregates = (),
    *,
    unit: int = UNIT,
    fan_in: int = FAN_IN,
    **fields: Any,
) -> Partial:
    """The partial of all files."""
    rows = _made(spark, files, asked(by, agg, fields), unit, 1)
    made: RDD[Any] = rows.map(lambda row: (row[0], row[1][1]))
    count = made.getNumPartitions()
    fan_in = max(2, fan_in)
    while count > fan_in:
        # Neighbours together: `treeReduce` mixes the order of the files, which `first` and `last` go by.
        count = -(-count // fan_in)
        groups = made.map(lambda item: (item[0] // fan_in, item)).partitionBy(count, int)
        made = groups.mapPartitionsWithIndex(lambda group, items: [(group, merged(some)) for some in [_in_order(items)] if some])
    return merged([partial for _, partial in sorted(made.collect(), key=lambda item: item[0])])


def aggregate(spark: SparkSession, files: Files, by: Columns = (), agg: Aggregates = (), **fields: Any) -> Answer:
    """As `ringfold.aggregate`, on a cluster whose executors all see the files."""
    own = {name: value for name, value in fields.items() if name not in ("unit", "fan_in")}
    return partial(spark, files, by, agg, **fields).result(asked(by, agg, own))


def dataframe(
    spark: SparkSession, files: Files, n: int, by: Columns = (), agg: Aggregates = (), *, unit: int = UNIT, **fields: Any
) -> DataFrame:
    """The answer in `n` shards of the keys, where it is too large for one machine: a partition each."""
    import pyarrow
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    query = asked_of_shards(by, agg, fields)
    rows = _made(spark, files, query, unit, n)

    def split(row: Row) -> Iterator[tuple[int, tuple[int, Partial]]]:
        for shard, one in enumerate(row[1][1:]):
            yield shard, (row[0], one)

    def stream(answer: Answer, shard: int) -> bytes:
        found = table(answer, shard)
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, found.schema) as out:
            out.write_table(found)
        return bytes(sink.getvalue())

    # Keys are numbers of partitions. `groupByKey` would copy the partials before the shuffle, too.
    parts = rows.flatMap(split).partitionBy(n, int)
    ends = parts.mapPartitionsWithIndex(lambda shard, items: [(ended(query, stream, shard, _in_order(items)),)])
    ends.persist(StorageLevel.DISK_ONLY)
    # A column's type is known when all its values are.
    found = ends.map(lambda row: pyarrow.ipc.open_stream(row[0]).schema).collect()
    schema = from_arrow_schema(pyarrow.unify_schemas(found, promote_options="permissive"))
    wanted = to_arrow_schema(schema)

    def tables(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for data in batch.column(0):
                yield from pyarrow.ipc.open_stream(data.as_buffer()).read_all().cast(wanted).to_batches()

    return spark.createDataFrame(ends, "shard binary").mapInArrow(tables, schema)
