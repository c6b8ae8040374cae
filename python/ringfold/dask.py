"""On Dask: a future makes a unit's partial, a tree of futures merges them; of many keys a future ends each shard."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from distributed import Client, Future, get_client

from ._query import Aggregates, Columns, Query
from ._ringfold import Answer, Partial
from ._work import (
    FAN_IN,
    UNIT,
    Files,
    Unit,
    asked,
    asked_of_shards,
    computed_shards,
    corrected,
    ended,
    frame,
    merged,
    table,
    tree,
    units,
)


def _submit(client: Client, call: Callable[..., Any], *args: Any, host: str | None = None) -> Future:
    where = {"workers": [host], "allow_other_workers": False} if host else {}
    # A file may be another one later: no result is known by its arguments.
    return client.submit(call, *args, pure=False, **where)


def _made(client: Client, files: Files, query: Query, unit: int, shards: int) -> list[list[Future]]:
    """For each unit a future of its receipt, and of its partial or each of its shards."""

    def begun(one: Unit) -> list[Future]:
        all_of_it = _submit(client, computed_shards, query, one, shards, host=one.host)
        # An item each, so that a worker fetches no more than it needs.
        return [_submit(client, operator.getitem, all_of_it, at) for at in range(1 + shards)]

    def start(work: Sequence[Unit]) -> list[list[Future]]:
        return [begun(one) for one in work]

    def receipts(made: list[list[Future]]) -> list[Partial]:
        return list(client.gather([futures[0] for futures in made]))

    return corrected(units(files, unit), start, receipts)


def partial(
    files: Files,
    by: Columns = (),
    agg: Aggregates = (),
    *,
    client: Client | None = None,
    unit: int = UNIT,
    fan_in: int = FAN_IN,
    **fields: Any,
) -> Partial:
    """The partial of all files."""
    client, query = client or get_client(), asked(by, agg, fields)
    made = [futures[1] for futures in _made(client, files, query, unit, 1)]
    found: Partial = tree(made, lambda few: _submit(client, merged, few), fan_in).result()
    return found


def aggregate(
    files: Files,
    by: Columns = (),
    agg: Aggregates = (),
    *,
    client: Client | None = None,
    unit: int = UNIT,
    fan_in: int = FAN_IN,
    **fields: Any,
) -> Answer:
    """As `ringfold.aggregate`, on a cluster whose workers all see the files. ``(host, path)`` is a file of one host."""
    return partial(files, by, agg, client=client, unit=unit, fan_in=fan_in, **fields).result(asked(by, agg, fields))


def shards(
    files: Files,
    n: int,
    by: Columns = (),
    agg: Aggregates = (),
    *,
    client: Client | None = None,
    unit: int = UNIT,
    each: Callable[[Answer, int], Any] = table,
    **fields: Any,
) -> list[Future]:
    """The answer in `n` shards of the keys, where it is too large for one machine.

    Returns futures of what ``each(answer, shard)`` makes of them, by default Arrow tables.
    """
    client, query = client or get_client(), asked_of_shards(by, agg, fields)
    made = _made(client, files, query, unit, n)
    of = [[futures[1 + shard] for futures in made] for shard in range(n)]
    return [_submit(client, ended, query, each, shard, of[shard]) for shard in range(n)]


def dataframe(files: Files, n: int, by: Columns = (), agg: Aggregates = (), **fields: Any) -> Any:
    """The same as a `dask.dataframe`, a partition a shard."""
    import dask.dataframe

    return dask.dataframe.from_delayed(shards(files, n, by, agg, each=frame, **fields), verify_meta=False)
