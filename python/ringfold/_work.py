"""What the engines share: files become units of work, units become partials, partials an answer."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from ._errors import DataError, Error, FileError, UsageError, WrongPartsError
from ._objects import Path, is_url, size_of
from ._query import Query, merge, result
from ._ringfold import Answer, Partial

Files = Path | Iterable[Path | tuple[str, Path]]
"""Paths, or ``(host, path)`` for a file that lies on that host only."""

UNIT = 256 << 20
"""Bytes of a unit of work."""

FAN_IN = 16
"""Partials that are merged at once."""

_COMPRESSED = (".gz", ".bgz", ".zst", ".zstd", ".bz2", ".xz", ".lzma", ".lz4", ".zz", ".Z")

T = TypeVar("T")


class Unit(NamedTuple):
    """The work of a task: a part of a file, or some whole files."""

    paths: tuple[str, ...]
    part: tuple[int, int] | None = None
    begin: Literal["unquoted", "quoted"] | int | None = None
    host: str | None = None


def units(files: Files, unit: int = UNIT) -> list[Unit]:
    """Divides large files, and puts small ones together, in their order. Compressed files, and those of a host, stay whole."""
    found: list[Unit] = []
    few: list[str] = []
    bytes_of_few = 0

    def end_few() -> None:
        nonlocal few, bytes_of_few
        if few:
            found.append(Unit(tuple(few)))
        few, bytes_of_few = [], 0

    for item in [files] if isinstance(files, (str, os.PathLike)) else files:
        host, path = item if isinstance(item, tuple) else (None, item)
        name = os.fspath(path)
        if host is not None:
            end_few()
            found.append(Unit((name,), host=host))
            continue
        size = _size(name)
        parts = 1 if name.endswith(_COMPRESSED) else max(1, -(-size // unit))
        if parts > 1:
            end_few()
            found += [Unit((name,), (part, parts)) for part in range(1, parts + 1)]
            continue
        if bytes_of_few + size > unit:
            end_few()
        few.append(name)
        bytes_of_few += size
    end_few()
    if not found:
        raise UsageError("there are no files")
    return found


def _size(path: str) -> int:
    try:
        return size_of(path) if is_url(path) else os.stat(path).st_size
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}", path, None, None, error.errno) from None


def computed(query: Query, unit: Unit) -> Partial:
    """The partial of a unit. Its errors name the host."""
    try:
        return _computed(query, unit)
    except Error as error:
        raise error.on(socket.gethostname()) from None


def _computed(query: Query, unit: Unit) -> Partial:
    try:
        return query.partial(unit.paths, range=unit.part, begin=unit.begin)
    except DataError:
        if unit.part is None or unit.begin is not None:
            raise
        # Perhaps the part begins within quotes. Whether it does, the receipt of the part before tells.
        with contextlib.suppress(DataError, UsageError):
            return query.partial(unit.paths, range=unit.part, begin="quoted")
        raise


def computed_shards(query: Query, unit: Unit, shards: int) -> list[Partial]:
    """The receipt of a unit's partial, and the partial, or its shards if there are several."""
    whole = computed(query, unit)
    return [whole.receipt(), *(whole.split(shards) if shards > 1 else [whole])]


def ended(query: Query, each: Callable[[Answer, int], Any], shard: int, partials: Sequence[Partial]) -> Any:
    """What is made of a shard's answer."""
    return each(result(partials, query, False), shard)


def merged(partials: Sequence[Partial]) -> Partial:
    """One partial of several."""
    return partials[0] if len(partials) == 1 else merge(partials, threads=1)


def corrected(
    work: Sequence[Unit], start: Callable[[Sequence[Unit]], list[T]], receipts: Callable[[list[T]], list[Partial]]
) -> list[T]:
    """Starts all units and waits for their receipts, then again those that began at a wrong byte, until all of them fit.

    Where newlines may stand in quotes, only the part before knows where a part's first record begins.
    """
    work = list(work)
    made = start(work)
    known = receipts(made)
    divided = {unit.paths[0] for unit in work if unit.part}
    while divided:
        wrong: dict[int, Any] = {}
        for path in divided:
            of_path = {unit.part: at for at, unit in enumerate(work) if unit.part and unit.paths[0] == path}
            try:
                merged([known[at] for at in of_path.values()])
            except WrongPartsError as error:
                wrong |= {of_path[part, parts]: begin for part, parts, begin in error.parts}
        if not wrong:
            break
        # Those that are certain are right then, so this ends.
        for at, begin in wrong.items():
            work[at] = work[at]._replace(begin=begin)
        again = start([work[at] for at in wrong])
        for at, one, receipt in zip(wrong, again, receipts(again)):
            made[at], known[at] = one, receipt
        divided = {work[at].paths[0] for at in wrong}
    return made


def tree(items: Sequence[T], merge: Callable[[list[T]], T], fan_in: int = FAN_IN) -> T:
    """Merges neighbours until one is left: `first` and `last` go by the order of the files."""
    items, fan_in = list(items), max(2, fan_in)
    while len(items) > 1:
        groups = [items[at : at + fan_in] for at in range(0, len(items), fan_in)]
        items = [group[0] if len(group) == 1 else merge(group) for group in groups]
    return items[0]


def asked(by: Any, agg: Any, fields: dict[str, Any]) -> Query:
    """The query of a task, which has one thread unless `threads` says otherwise."""
    return Query(by=by, agg=agg, **{"threads": 1, **fields})


def asked_of_shards(by: Any, agg: Any, fields: dict[str, Any]) -> Query:
    """The query of a task whose answer comes in shards: nothing in it may be of all keys."""
    query = asked(by, agg, fields)
    for name in ("top", "pivot", "total", "fill"):
        if getattr(query, name):
            raise UsageError(f"`{name}` is of all keys, and a shard has some of them: ask `aggregate`")
    return query


def table(answer: Answer, _: int) -> Any:
    """A shard as an Arrow table."""
    import pyarrow

    return pyarrow.table(answer)


def frame(answer: Answer, _: int) -> Any:
    """A shard as a DataFrame of pandas."""
    return answer.to_pandas()
