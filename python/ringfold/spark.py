"""On Spark: a task makes a unit's partial; its shuffle brings shards, or many partials, together. Executors need the wheel only."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pyspark import RDD, StorageLevel
from pyspark.sql import DataFrame, SparkSession

from ._errors import Error
from ._query import Aggregates, Columns, Query
from ._ringfold import Answer, Partial
from ._work import FAN_IN, UNIT, Files, Unit, asked, asked_of_shards, computed_shards, corrected, ended, merged, table, units

Row = tuple[int, tuple[int, int, Any]]
"""Where an item goes, and the item: the number of its unit, 0 and the receipt, or the number of a shard, from 1, and the shard."""


def _units(files: Files, unit: int) -> list[Unit]:
    work = units(files, unit)
    if any(one.host for one in work):
        raise ValueError("Spark doesn't run a task on a host of one's choice: all executors need to see the files")
    return work


def _computed(query: Query, unit: Unit, shards: int) -> list[Any]:
    """The receipt of a unit and its shards, or its error: what a task raises is tried again, and loses its place."""
    try:
        return list(computed_shards(query, unit, shards))
    except Error as error:
        return [error]


def _receipts(found: list[Any]) -> list[Partial]:
    """The same, if no unit failed."""
    for one in found:
        if isinstance(one, Error):
            raise one
    return found


def _shuffled(spark: SparkSession, work: list[Unit], query: Query, shards: int, n: int, to: Callable[[int, int], int]) -> RDD[Row]:
    """The shards of all units in `n` partitions; `to` says in which, from the place of the unit and the shard's number."""
    context = spark.sparkContext
    numbers = itertools.count()

    def rows(item: tuple[int, Unit]) -> Iterator[Row]:
        number, unit = item
        for shard, one in enumerate(_computed(query, unit, shards)):
            yield to(number, shard) if shard else 0, (number, shard, one)

    def start(some: Sequence[Unit]) -> list[tuple[RDD[Row], int]]:
        numbered = [(next(numbers), unit) for unit in some]
        made = context.parallelize(numbered, len(numbered)).flatMap(rows).partitionBy(n, int)
        return [(made, number) for number, _ in numbered]

    def receipts(made: list[tuple[RDD[Row], int]]) -> list[Partial]:
        # A job of one partition runs the tasks of all units. What they wrote stays for the jobs that come.
        found = context.runJob(made[0][0], lambda items: [(number, one) for _, (number, shard, one) in items if not shard], [0])
        return _receipts([one for _, one in sorted(found, key=lambda item: item[0])])

    made = corrected(work, start, receipts)
    places = {number: place for place, (_, number) in enumerate(made)}
    if all(number == place for number, place in places.items()):
        return made[0][0]

    def moved(row: Row) -> Iterator[Row]:
        # A unit that was begun again has another number, and its place among the others.
        number, shard, one = row[1]
        if shard and number in places:
            yield to(places[number], shard), (places[number], shard, one)

    return context.union(list({id(rdd): rdd for rdd, _ in made}.values())).flatMap(moved).partitionBy(n, int)


def _in_order(items: Iterable[Row]) -> list[Partial]:
    """The partials of a partition, in the order of their units."""
    found = [(number, one) for _, (number, shard, one) in items if shard]
    return [one for _, one in sorted(found, key=lambda item: item[0])]


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
    work, query, fan_in = _units(files, unit), asked(by, agg, fields), max(2, fan_in)
    if len(work) <= fan_in:

        def start(some: Sequence[Unit]) -> list[Any]:
            return list(spark.sparkContext.parallelize(some, len(some)).map(lambda one: _computed(query, one, 1)).collect())

        return merged([one for _, one in corrected(work, start, lambda made: _receipts([row[0] for row in made]))])
    # Neighbours together: `treeReduce` mixes the order of the files, which `first` and `last` go by.
    count = -(-len(work) // fan_in)
    rows = _shuffled(spark, work, query, 1, count, lambda place, _: place // fan_in)
    while True:
        groups: RDD[Any] = rows.mapPartitionsWithIndex(lambda group, items: [(group, merged(_in_order(items)))])
        if count <= fan_in:
            return merged([one for _, one in groups.collect()])
        count = -(-count // fan_in)
        rows = groups.map(lambda item: (item[0] // fan_in, (item[0], 1, item[1]))).partitionBy(count, int)


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
    parts = _shuffled(spark, _units(files, unit), query, n, n, lambda _, shard: shard - 1)

    def stream(answer: Answer, shard: int) -> bytes:
        found = table(answer, shard)
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, found.schema) as out:
            out.write_table(found)
        return bytes(sink.getvalue())

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
