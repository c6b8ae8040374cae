"""Exact group-by over text files larger than memory: CSV, web logs, JSON lines, compressed or not.

>>> import ringfold
>>> answer = ringfold.aggregate("orders.csv", by="city", agg=["count", "sum:price"])
>>> print(answer)

`aggregate` answers a question, `Query` keeps one, `Query.partial` and `merge` divide the work over processes and machines,
`describe` shows what is in a file, `count` counts lines, `probe` shows what a
machine allows. docs/python.md has examples, docs/query.md says what a question is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from . import _ringfold
from ._errors import (
    DataError,
    EngineError,
    Error,
    FileError,
    IncompleteError,
    InternalError,
    UsageError,
    WrongPartsError,
)
from ._objects import Paths, listed, opened
from ._query import Query, Size, aggregate, describe, merge
from ._ringfold import Answer, Partial, __version__, decline_sigbus_handler
from ._run import Notice, Progress, heard, ticking

__all__ = [
    "Answer",
    "Count",
    "DataError",
    "EngineError",
    "Error",
    "FileError",
    "IncompleteError",
    "InternalError",
    "Notice",
    "Partial",
    "Query",
    "UsageError",
    "WrongPartsError",
    "__version__",
    "aggregate",
    "count",
    "decline_sigbus_handler",
    "describe",
    "merge",
    "probe",
]


for _public in (
    DataError,
    EngineError,
    Error,
    FileError,
    IncompleteError,
    InternalError,
    Notice,
    Query,
    UsageError,
    WrongPartsError,
):
    _public.__module__ = "ringfold"


class Count(NamedTuple):
    """What `count` counts."""

    lines: int
    bytes: int


def count(
    paths: Paths,
    *,
    null: bool = False,
    threads: int | None = None,
    no_decompress: bool = False,
    block_size: Size | None = None,
    progress: Progress = None,
) -> Count:
    """The lines and bytes of all files together, as `wc -l` and `wc -c` count them.

    With ``null=True`` records end with NUL instead of newline. Compressed files count as the text in them, unless
    ``no_decompress=True``.

    Raises `FileError` where a file can't be read.
    """
    flags = ["--null"] if null else []
    query = Query(threads=threads, no_decompress=no_decompress, block_size=block_size)
    with ticking(progress) as tick, opened(paths) as files:
        counted, notices = _ringfold.count(flags + query.flags(), files, tick)
    heard(notices)
    return Count(sum(lines for lines, _ in counted), sum(size for _, size in counted))


def probe(paths: Paths | Iterable[str] = ()) -> dict[str, Any]:
    """What this machine, and the devices of these files, allow: the JSON of `ringfold probe`, see docs/probe.md.

    Raises `FileError` where a file can't be opened.
    """
    found: dict[str, Any] = json.loads(_ringfold.probe(listed(paths)))
    return found
