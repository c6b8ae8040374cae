from typing import Literal, TypedDict

from ._query import Seconds, Size, Texts

class Fields(TypedDict, total=False):
    """The fields of `Query` beside `by` and `agg`, for type checkers. A test holds both lists together."""

    where: Texts
    sort: str | None
    top: int | None
    per: Texts
    pivot: str | None
    total: bool
    fill: str | None
    having: Texts
    precision: int | None
    names: Texts
    header: bool | None
    delimiter: str | None
    jsonl: bool
    log: str | None
    quote: str | None
    null_value: Texts
    single_line: bool
    ragged: bool
    squeeze: bool
    skip_lines: int | None
    comment: str | None
    trim: bool
    escape: str | None
    repeated_header: Literal["skip", "keep"] | None
    decimal_comma: bool
    float: bool
    on_error: Literal["fail", "skip", "null"] | None
    max_errors: int | None
    rejects: str | None
    lookup: Texts
    on: Texts
    time_zone: str | None
    input_time_zone: str | None
    approximate: bool
    hash_key: str | None
    threads: int | None
    memory: Size | None
    spill_dir: str | None
    quiet: bool
    no_decompress: bool
    decoder_memory: Size | None
    engine: str | None
    direct: bool
    block_size: Size | None
    queue_depth: int | None
    profile: str | None
    buffers: int | None
    max_record: Size | None
    io_timeout: Seconds | None
    registered_buffers: Literal["auto", "on", "off"] | None
    registered_files: bool
    sqpoll: bool | int
    async_: bool | int
    task_run: Literal["coop", "defer"] | None
    entries: int | None
    iopoll: bool
    rings: int | None
    cache: Literal["auto", "keep", "none"] | None
    dontcache: bool
    fadvise: str | None
    readahead: Size | None
    populate: Literal["auto", "on", "off"] | None
    map_advice: str | None
    huge_pages: Literal["auto", "thp", "hugetlb", "off"] | None
    pin: str | None
