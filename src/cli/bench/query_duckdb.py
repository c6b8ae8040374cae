# The group-by in DuckDB, which writes the answer itself: `key;min;mean;max`, a line a key. The file's
# shape is told, so that nothing is sniffed. The mean is rounded half up, in tenths, as
# integers: floor(above / below).
import sys

import duckdb

# On a long query it draws a bar on standard output, where the answer goes.
duckdb.execute("SET enable_progress_bar = false")
duckdb.execute(
    """
    COPY (
        SELECT key, low,
               CAST((above - (above % below + below) % below) // below * 0.1 AS DECIMAL(18, 1)),
               high
        FROM (
            SELECT key,
                   CAST(min(value) AS DECIMAL(18, 1)) AS low,
                   CAST(max(value) AS DECIMAL(18, 1)) AS high,
                   2 * CAST(round(sum(value) * 10) AS BIGINT) + count(*) AS above,
                   2 * count(*) AS below
            FROM read_csv(?, delim = ';', header = false, quote = '', escape = '', auto_detect = false,
                          columns = {'key': 'VARCHAR', 'value': 'DOUBLE'})
            GROUP BY key
        )
        ORDER BY key
    ) TO '/dev/stdout' (FORMAT csv, HEADER false, DELIMITER ';', QUOTE '', ESCAPE '', USE_TMP_FILE false)
    """,
    [sys.argv[1]],
)
