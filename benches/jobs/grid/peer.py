# A query in DuckDB or Polars over a file of orders; the answer goes to standard output, and the seconds that it took,
# without the interpreter's start, to standard error.
import json
import sys
import time

asked = json.loads(sys.argv[1])
path, separator, options = asked["path"], asked["separator"], asked["options"]
numbers = {"id": int, "quantity": int, "price": float, "discount": float}
columns = asked["columns"]

if asked["tool"] == "DuckDB":
    import duckdb

    began = time.perf_counter()
    duckdb.execute("SET enable_progress_bar = false")
    types = {int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}
    types = ", ".join(f"'{name}': '{types[numbers.get(name, str)]}'" for name in columns)
    read = f"""read_csv('{path}', delim = '{separator}', header = true, quote = '"', escape = '"', auto_detect = false,
        columns = {{{types}}}{options})"""
    query = f"WITH orders AS (SELECT * FROM {read}) {asked['query']}"
    duckdb.execute(f"COPY ({query}) TO '/dev/stdout' (FORMAT csv, HEADER true, USE_TMP_FILE false)")
else:
    import polars as pl

    began = time.perf_counter()
    types = {int: pl.Int64, float: pl.Float64, str: pl.String}
    schema = {name: types[numbers.get(name, str)] for name in columns}
    rows = eval(f"pl.scan_csv(path, separator=separator, schema=schema{options})")
    eval(asked["query"]).sink_csv("/dev/stdout", engine="streaming")
print(time.perf_counter() - began, file=sys.stderr)
