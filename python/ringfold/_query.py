"""What is asked: the flags of `ringfold aggregate` as fields."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from . import _ringfold
from ._objects import Paths, opened
from ._run import Progress, heard, ticking

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._fields import Fields

Texts = str | Iterable[str] | None
"""A text or several."""

Columns = str | int | Iterable[str | int] | None
"""Columns by name, by number from 1, or values such as ``"lower(city) as town"``."""

Aggregates = str | Iterable[str] | Mapping[str, str] | None
"""``"count,sum:price"``, ``["count", "sum:price"]``, or ``{"total": "sum(price)"}`` with a name for each column."""

Size = int | str
"""Bytes, or a text such as ``"512M"``; letters are powers of 1024."""

Seconds = int | float | str
"""Seconds, or a text such as ``"500ms"``."""

_FLAGS = {"by": "key", "agg": "aggregate", "names": "as", "async_": "async"}
_SEVERAL = ("by", "agg", "where", "having", "names", "null_value", "lookup", "on", "per")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Query:
    """What is asked of files, and how they are read. It can be compared, hashed and pickled.

    Each field is a flag of ``ringfold aggregate`` of the same name, and means the same; ``ringfold aggregate --help`` and
    ``--help-io`` say what. Only these have other names: ``by`` is ``--key``, ``agg`` is ``--aggregate``, ``names`` is ``--as``,
    ``async_`` is ``--async``, and ``header=False`` is ``--no-header``. Sizes are in bytes or texts such as ``"512M"``,
    ``io_timeout`` is in seconds. Without ``by`` all records are one group; without ``agg`` records are counted. A field with a
    wrong value is told when the query runs, by a `UsageError`.

    >>> query = Query(by="city", agg={"total": "sum(price)"})
    >>> answer = query.aggregate("orders.csv")
    """

    by: Columns = ()
    agg: Aggregates = ()
    where: Texts = ()
    # The answer.
    sort: str | None = None
    top: int | None = None
    per: Texts = ()
    pivot: str | None = None
    total: bool = False
    fill: str | None = None
    having: Texts = ()
    precision: int | None = None
    names: Texts = ()
    # How records are written.
    header: bool | None = None
    delimiter: str | None = None
    jsonl: bool = False
    log: str | None = None
    quote: str | None = None
    null_value: Texts = ()
    single_line: bool = False
    ragged: bool = False
    squeeze: bool = False
    skip_lines: int | None = None
    comment: str | None = None
    trim: bool = False
    escape: str | None = None
    repeated_header: Literal["skip", "keep"] | None = None
    decimal_comma: bool = False
    float: bool = False
    # Malformed records.
    on_error: Literal["fail", "skip", "null"] | None = None
    max_errors: int | None = None
    rejects: str | None = None
    # Tables beside the input, times, estimates.
    lookup: Texts = ()
    on: Texts = ()
    time_zone: str | None = None
    input_time_zone: str | None = None
    approximate: bool = False
    hash_key: str | None = None
    # Resources.
    threads: int | None = None
    memory: Size | None = None
    spill_dir: str | None = None
    quiet: bool = False
    no_decompress: bool = False
    decoder_memory: Size | None = None
    # How files are read.
    engine: str | None = None
    direct: bool = False
    block_size: Size | None = None
    queue_depth: int | None = None
    profile: str | None = None
    buffers: int | None = None
    max_record: Size | None = None
    io_timeout: Seconds | None = None
    registered_buffers: Literal["auto", "on", "off"] | None = None
    registered_files: bool = False
    sqpoll: bool | int = False
    async_: bool | int = False
    task_run: Literal["coop", "defer"] | None = None
    entries: int | None = None
    iopoll: bool = False
    rings: int | None = None
    cache: Literal["auto", "keep", "none"] | None = None
    dontcache: bool = False
    fadvise: str | None = None
    readahead: Size | None = None
    populate: Literal["auto", "on", "off"] | None = None
    map_advice: str | None = None
    huge_pages: Literal["auto", "thp", "hugetlb", "off"] | None = None
    pin: str | None = None

    def __post_init__(self) -> None:
        # A text and a list with it are equal, and so are 1 and "1".
        for name in _SEVERAL:
            value = getattr(self, name)
            if isinstance(value, Mapping):
                value = [f"{what} as {_quoted(named)}" for named, what in value.items()]
            elif value is None or isinstance(value, (str, int)):
                value = [] if value is None else [value]
            object.__setattr__(self, name, tuple(str(item) for item in value))
        for name in ("rejects", "hash_key", "spill_dir"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, os.fspath(value))

    def flags(self) -> list[str]:
        """The flags as the program takes them, each with its value in one word."""
        words = []
        for field in dataclasses.fields(self):
            name, value = field.name, getattr(self, field.name)
            flag = "--" + _FLAGS.get(name, name).replace("_", "-")
            if name == "header" and value is False:
                words.append("--no-header")
            elif value is True:
                words.append(flag)
            elif name == "io_timeout" and isinstance(value, (int, float)):
                words.append(f"{flag}={round(1000 * value)}ms")
            elif isinstance(value, tuple):
                words += [f"{flag}={item}" for item in value]
            elif value is not None and value is not False:
                words.append(f"{flag}={value}")
        return words

    def _asking(self) -> list[str]:
        """The same with something to ask."""
        return self.flags() + ([] if self.by or self.agg else ["--aggregate=count"])

    def replace(self, **fields: Any) -> Query:
        """The same query with other values of these fields."""
        return dataclasses.replace(self, **fields)

    def aggregate(self, paths: Paths, *, progress: Progress = None) -> _ringfold.Answer:
        """The answer. See `ringfold.aggregate`."""
        with ticking(progress) as tick, opened(paths) as files:
            answer = _ringfold.aggregate(self._asking(), files, tick)
        heard(answer.notices)
        return answer

    def partial(
        self,
        paths: Paths,
        range: tuple[int, int] | None = None,
        *,
        begin: Literal["unquoted", "quoted"] | int | None = None,
        progress: Progress = None,
    ) -> _ringfold.Partial:
        """The groups before they become an answer, to be merged with others by `ringfold.merge`.

        ``range=(i, n)`` takes only part ``i`` of ``n`` of the files as one input, counted from 1; a record belongs to the part
        that its first byte lies in. Where quoted fields hold newlines, ``begin`` says where the part's first record begins;
        without it the first records tell, and `ringfold.merge` looks whether that was right. What the query says of an answer,
        such as ``sort``, is left to `Partial.result`.

        Raises what `ringfold.aggregate` does.
        """
        words = self.replace(**_OF_ANSWERS)._asking()
        if range is not None:
            words.append(f"--range={range[0]}/{range[1]}")
        if begin is not None:
            words.append(f"--begin={begin}")
        with ticking(progress) as tick, opened(paths, range) as files:
            partial, notices = _ringfold.partial(words, files, tick)
        heard(notices)
        return partial

    def explain(self, paths: Paths) -> str:
        """What the query does with the files, and what their first records look like, in words. Nothing else is read."""
        with opened(paths) as files:
            text, notices = _ringfold.explain(self._asking(), files)
        heard(notices)
        return text


# What is about an answer and not about groups.
_OF_ANSWERS: dict[str, Any] = {
    "sort": None,
    "top": None,
    "per": (),
    "pivot": None,
    "total": False,
    "fill": None,
    "having": (),
    "precision": None,
    "names": (),
}


def result(partials: Iterable[_ringfold.Partial], query: Query | None, allow_gaps: bool) -> _ringfold.Answer:
    """The answer of partials, which aren't merged to one before. See `Partial.result`."""
    query = query or Query()
    kept = {name: getattr(query, name) for name in (*_OF_ANSWERS, "memory", "spill_dir", "threads")}
    words = Query(**kept).flags() + (["--allow-gaps"] if allow_gaps else [])
    answer = _ringfold.answer(words, list(partials))
    heard([] if query.quiet else answer.notices)
    return answer


def merge(partials: Iterable[_ringfold.Partial], *, threads: int | None = None) -> _ringfold.Partial:
    """One partial of several of one query, by so many threads or one for each core. The order doesn't matter, but ``first`` and
    ``last`` go by it.

    Raises `UsageError` where they are of different queries, or records come twice, `DataError` where one is damaged, and
    `WrongPartsError` where parts of a file with quoted newlines were read from a wrong byte on; its ``parts`` say how to run
    them again.
    """
    merged, notices = _ringfold.merge(list(partials), threads)
    heard(notices)
    return merged


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def aggregate(
    paths: Paths,
    by: Columns = (),
    agg: Aggregates = (),
    *,
    progress: Progress = None,
    **fields: Unpack[Fields],
) -> _ringfold.Answer:
    """Groups the records of files by columns, exactly, and computes aggregates of each group.

    ``by`` names columns, ``agg`` what is computed: ``["count", "sum:price"]``, or ``{"total": "sum(price)"}`` with a name for each
    column of the answer. Further fields are those of `Query`. Files may be larger than memory. ``progress=True`` draws a bar (by
    tqdm if it is installed); a function gets the bytes that were read, and all bytes or None, some 20 times a second.

    The lock of the interpreter is released meanwhile; Ctrl-C ends the run.

    >>> answer = ringfold.aggregate("orders.csv", by="city", agg=["count", "sum:price"], where="status = 'paid'")
    >>> polars.DataFrame(answer)   # or pyarrow.table(answer), answer.to_pandas(), answer.rows(), print(answer)

    What the program would say on stderr are warnings of the class `Notice`, and in ``answer.notices``.

    Raises `UsageError` where the question can't be understood, `DataError` with file, bytes and line of a malformed record,
    `FileError` (an OSError) where a file can't be read, `EngineError` where a way to read isn't available.
    """
    return Query(by=by, agg=agg, **fields).aggregate(paths, progress=progress)


def describe(paths: Paths, *, progress: Progress = None, **fields: Unpack[Fields]) -> _ringfold.Answer:
    """What the records of files hold: a row for each column, with its type, nulls, distinct values, quartiles, frequent values.

    Fields are those of `Query` that say how records are written and read, and ``where``. Malformed records are skipped and counted,
    unless ``on_error="fail"``. docs/describe.md says what each column of the answer means.

    Raises what `aggregate` does.
    """
    with ticking(progress) as tick, opened(paths) as files:
        answer = _ringfold.describe(Query(**fields).flags(), files, tick)
    heard(answer.notices)
    return answer
