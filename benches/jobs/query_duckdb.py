# A query in DuckDB, which writes the answer itself.
import sys

import duckdb

# On a long query it draws a bar on standard output, where the answer goes.
duckdb.execute("SET enable_progress_bar = false")
duckdb.execute(f"COPY ({sys.argv[1]}) TO '/dev/stdout' (FORMAT csv, HEADER true, USE_TMP_FILE false)")
