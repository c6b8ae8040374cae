# The group-by in DuckDB; runs behind answer.py. The file's shape is told, so that nothing is sniffed.
import duckdb

# On a long query it draws a bar on standard output, where the answer goes.
duckdb.execute("SET enable_progress_bar = false")

write(
    duckdb.execute(
        """
        SELECT key, min(value), max(value), sum(value), count(*)
        FROM read_csv(?, delim = ';', header = false, quote = '', escape = '', auto_detect = false,
                      columns = {'key': 'VARCHAR', 'value': 'DOUBLE'})
        GROUP BY key
        """,
        [sys.argv[1]],
    ).fetchall()
)
