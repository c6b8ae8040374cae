"""On Ray: a task makes a unit's partial, a tree of tasks merges them; of many keys a task ends each shard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayTaskError

from ._query import Aggregates, Columns, Query
from ._ringfold import Answer, Partial
from ._work import FAN_IN, UNIT, Files, Unit, asked, asked_of_shards, computed_shards, corrected, ended, merged, table, tree, units


def _where(unit: Unit) -> dict[str, Any]:
    """A host's file is read on that host, and nowhere else."""
    if unit.host is None:
        return {}
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"]]
    names = ("NodeID", "NodeManagerHostname", "NodeManagerAddress")
    known = [node["NodeID"] for node in nodes if unit.host in [node[name] for name in names]]
    if len(known) != 1:
        raise ValueError(f"{len(known)} nodes of Ray are called {unit.host!r}: ray.nodes() lists their names")
    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(known[0], soft=False)}


def _got(refs: Any) -> Any:
    """What tasks made; the error of one is that of the task."""
    try:
        return ray.get(refs)
    except RayTaskError as error:
        raise error.cause from None


def _made(files: Files, query: Query, unit: int, shards: int) -> list[list[ray.ObjectRef[Partial]]]:
    """For each unit a reference to its receipt, and to its partial or each of its shards."""
    # A worker that dies is lost time; an error of the data stays one.
    task = ray.remote(num_cpus=query.threads, max_retries=-1, num_returns=1 + shards)(computed_shards)

    def start(work: Sequence[Unit]) -> list[list[Any]]:
        return [list(task.options(**_where(one)).remote(query, one, shards)) for one in work]

    def receipts(made: list[list[Any]]) -> list[Partial]:
        try:
            return list(_got([refs[0] for refs in made]))
        except BaseException:
            for refs in made:
                ray.cancel(refs[0])
            raise

    return corrected(units(files, unit), start, receipts)


def _merged(*partials: Partial) -> Partial:
    return merged(partials)


def partial(
    files: Files, by: Columns = (), agg: Aggregates = (), *, unit: int = UNIT, fan_in: int = FAN_IN, **fields: Any
) -> Partial:
    """The partial of all files."""
    query = asked(by, agg, fields)
    task = ray.remote(num_cpus=query.threads, max_retries=-1)(_merged)
    made = [refs[1] for refs in _made(files, query, unit, 1)]
    found: Partial = _got(tree(made, lambda few: task.remote(*few), fan_in))
    return found


def aggregate(
    files: Files, by: Columns = (), agg: Aggregates = (), *, unit: int = UNIT, fan_in: int = FAN_IN, **fields: Any
) -> Answer:
    """As `ringfold.aggregate`, on a cluster whose nodes all see the files. ``(host, path)`` is a file of one node."""
    return partial(files, by, agg, unit=unit, fan_in=fan_in, **fields).result(asked(by, agg, fields))


def _ended(query: Query, each: Callable[[Answer, int], Any], shard: int, *partials: Partial) -> Any:
    return ended(query, each, shard, partials)


def shards(
    files: Files,
    n: int,
    by: Columns = (),
    agg: Aggregates = (),
    *,
    unit: int = UNIT,
    each: Callable[[Answer, int], Any] = table,
    **fields: Any,
) -> list[ray.ObjectRef[Any]]:
    """The answer in `n` shards of the keys, where it is too large for one machine.

    Returns references to what ``each(answer, shard)`` makes of them, by default Arrow tables.
    """
    query = asked_of_shards(by, agg, fields)
    task = ray.remote(num_cpus=query.threads, max_retries=-1)(_ended)
    made = _made(files, query, unit, n)
    return [task.remote(query, each, shard, *(refs[1 + shard] for refs in made)) for shard in range(n)]


def dataset(files: Files, n: int, by: Columns = (), agg: Aggregates = (), **fields: Any) -> Any:
    """The same as a `ray.data.Dataset`, a block a shard."""
    import ray.data

    return ray.data.from_arrow_refs(shards(files, n, by, agg, **fields))
