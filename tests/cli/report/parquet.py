"""Reads the tables of `eprof export --format parquet` by DuckDB, and prints what they say as JSON.

parquet.py DIR [FILE]: FILE has one SELECT whose rows are wanted, of the views samples, stack_frames, functions, balance.
"""

import json
import sys

import duckdb

folder = sys.argv[1]
database = duckdb.connect()
for table in ("samples", "stack_frames", "functions", "balance"):
    database.execute(f"CREATE VIEW all_{table} AS SELECT * FROM read_parquet('{folder}/{table}/*.parquet')")
database.execute("CREATE VIEW samples AS SELECT * FROM all_samples WHERE is_top = 1")
database.execute("CREATE VIEW balance AS SELECT * FROM all_balance")
for table in ("stack_frames", "functions"):
    database.execute(f"CREATE VIEW {table} AS SELECT DISTINCT * FROM all_{table}")


def rows(query):
    answer = database.execute(query)
    names = [column[0] for column in answer.description]
    return [dict(zip(names, row)) for row in answer.fetchall()]


if len(sys.argv) > 2:
    with open(sys.argv[2], encoding="utf-8") as file:
        print(json.dumps(rows(file.read().rstrip("; \n"))))
    sys.exit()

OWN_AND_TOTAL = """
    SELECT name, SUM(CASE WHEN is_leaf = 1 THEN joules ELSE 0 END) AS own,
           SUM(CASE WHEN is_first = 1 THEN joules ELSE 0 END) AS total
    FROM samples JOIN stack_frames USING (stack_id) JOIN functions USING (function_id) GROUP BY name"""
CHECK = """
    SELECT b.domain, b.measured, b.functions, s.joules,
           b.functions + b.static + b.others + b.recorder + b.lost AS parts
    FROM balance AS b LEFT JOIN (SELECT recording, domain, SUM(joules) AS joules FROM all_samples GROUP BY ALL) AS s
    USING (recording, domain)"""
version = f"""
    SELECT DISTINCT decode(value) AS version FROM parquet_kv_metadata('{folder}/*/*.parquet')
    WHERE decode(key) = 'eprof.schema.version'"""
print(
    json.dumps(
        {
            "balance": rows("SELECT * EXCLUDE (window_start, window_end), epoch_us(window_start) AS start, "
                            "epoch_us(window_end) AS end FROM balance ORDER BY boot, domain"),
            "check": rows(CHECK),
            "functions": rows(OWN_AND_TOTAL),
            "ranks": rows("SELECT node, rank, SUM(joules) AS joules FROM samples GROUP BY ALL ORDER BY ALL"),
            "texts": rows("SELECT DISTINCT job, labels, process, comm, method FROM samples"),
            "orphans": rows("SELECT COUNT(*) AS count FROM samples ANTI JOIN stack_frames USING (stack_id)"),
            "versions": rows(version),
        }
    )
)
