"""On the processes of one machine."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from ._query import Aggregates, Columns
from ._ringfold import Answer, Partial
from ._work import FAN_IN, UNIT, Files, Unit, asked, computed_shards, corrected, merged, tree, units


def _environment(variables: dict[str, str]) -> None:
    """Sets the variables of this process: the fork server has those of the time at which it was started."""
    os.environ.clear()
    os.environ.update(variables)


@contextmanager
def _pool(executor: Executor | None, processes: int | None) -> Iterator[Executor]:
    if executor is not None:
        yield executor
        return
    # `fork` copies a process in which threads may hold locks.
    context = multiprocessing.get_context("forkserver")
    variables = dict(os.environ)
    with ProcessPoolExecutor(processes, context, _environment, (variables,)) as pool:
        yield pool


def aggregate(
    files: Files,
    by: Columns = (),
    agg: Aggregates = (),
    *,
    processes: int | None = None,
    executor: Executor | None = None,
    unit: int = UNIT,
    **fields: Any,
) -> Answer:
    """As `ringfold.aggregate`, by processes of this machine, or by an executor of any kind."""
    query = asked(by, agg, fields)
    with _pool(executor, processes) as pool:

        def start(work: Sequence[Unit]) -> list[Future[list[Partial]]]:
            return [pool.submit(computed_shards, query, one, 1) for one in work]

        def receipts(made: list[Future[list[Partial]]]) -> list[Partial]:
            try:
                return [one.result()[0] for one in made]
            except BaseException:
                for one in made:
                    one.cancel()
                raise

        made = corrected(units(files, unit), start, receipts)
        partials = [one.result()[1] for one in made]
    return tree(partials, merged, FAN_IN).result(query)
