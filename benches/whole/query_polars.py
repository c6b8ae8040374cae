# The group-by in Polars, streaming; runs behind answer.py. The file's shape is told, nothing inferred.
import polars as pl

value = pl.col("value")
write(
    pl.scan_csv(
        sys.argv[1],
        separator=";",
        has_header=False,
        quote_char=None,
        schema={"key": pl.String, "value": pl.Float64},
    )
    .group_by("key")
    .agg(value.min().alias("min"), value.max().alias("max"), value.sum().alias("sum"), pl.len())
    .collect(engine="streaming")
    .iter_rows()
)
