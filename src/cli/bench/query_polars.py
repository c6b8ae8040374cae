# The group-by in Polars, streaming, which writes the answer itself: `key;min;mean;max`, a line a key. The
# file's shape is told, nothing inferred. The mean is rounded half up, in tenths, as integers.
import sys

import polars as pl


def tenths(value):
    return (value * 10).round().cast(pl.Int64)


value = pl.col("value")
count = pl.len().cast(pl.Int64)
(
    pl.scan_csv(
        sys.argv[1],
        separator=";",
        has_header=False,
        quote_char=None,
        schema={"key": pl.String, "value": pl.Float64},
    )
    .group_by("key")
    .agg(
        (tenths(value.min()) / 10).alias("min"),
        ((2 * tenths(value.sum()) + count) // (2 * count) / 10).alias("mean"),
        (tenths(value.max()) / 10).alias("max"),
    )
    .sort("key")
    .sink_csv(
        "/dev/stdout",
        include_header=False,
        separator=";",
        quote_style="never",
        float_precision=1,
        engine="streaming",
    )
)
