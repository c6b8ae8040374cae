# A query in Polars, streaming, which writes the answer itself. The file's shape is told, nothing inferred.
import json
import sys

import polars as pl

query = json.loads(sys.argv[1])
types = {"decimal": pl.Float64, "integer": pl.Int64, "text": pl.String}
schema = {name: types[kind] for name, kind in query["columns"]}
if query["json"]:
    rows = pl.scan_ndjson(query["path"], schema=schema)
else:
    rows = pl.scan_csv(
        query["path"],
        separator=query["separator"],
        quote_char=query["quote"],
        has_header=query["header"],
        null_values=query["null"],
        schema=schema,
    )
if query["shipped"]:
    rows = rows.filter(pl.col("status") == "shipped")


def aggregate(name, column):
    match name:
        case "count":
            return pl.len().alias("count")
        case "median" | "p99":
            found = pl.col(column).quantile(0.5 if name == "median" else 0.99, "linear")
        case "distinct":
            found = pl.col(column).n_unique()
        case _:
            found = getattr(pl.col(column), name)()
    return found.alias(f"{name}_{column}")


aggregates = [aggregate(name, column) for name, column in query["aggregates"]]
rows.group_by(query["keys"]).agg(aggregates).sink_csv("/dev/stdout", engine="streaming")
