# A query in Polars, streaming, which writes the answer itself. The file's shape is told, nothing inferred.
import json
import sys

import polars as pl

query = json.loads(sys.argv[1])
types = {"decimal": pl.Float64, "integer": pl.Int64, "text": pl.String}
rows = pl.scan_csv(
    query["path"],
    separator=query["separator"],
    quote_char=query["quote"],
    schema={name: types[kind] for name, kind in query["columns"]},
)
if query["shipped"]:
    rows = rows.filter(pl.col("status") == "shipped")
aggregates = [
    pl.len().alias("count") if name == "count" else getattr(pl.col(column), name)().alias(f"{name}_{column}")
    for name, column in query["aggregates"]
]
rows.group_by(query["keys"]).agg(aggregates).sink_csv("/dev/stdout", engine="streaming")
