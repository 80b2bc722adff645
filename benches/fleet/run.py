"""Asks the tables of tables.py for joules by function, by each engine that is there, and holds the answers against the truth.

run.py FLEET ROWS PLACE...

FLEET is an eprof-fleet; a PLACE is what it is asked of (a folder, clickhouse://...), or `datafusion:DIR` or `duckdb:DIR`: DIR by that package from
PyPI, by the SQL that `FLEET report DIR --sql` prints. Prints seconds, and memory at its most of the process that was started (a server's is its own).
MEMORY (bytes) bounds the embedded engine and the packages; without it eprof-fleet takes a quarter of what is free and the
packages what they want.
"""

import json
import os
import subprocess
import sys
import time

import tables


def by_datafusion(folder, sql):
    import datafusion

    runtime = datafusion.RuntimeEnvBuilder().with_disk_manager_os()
    if limit := os.environ.get("MEMORY"):
        runtime = runtime.with_fair_spill_pool(int(limit))
    config = datafusion.SessionConfig({
        "datafusion.execution.parquet.schema_force_view_types": "false", "datafusion.execution.parquet.pushdown_filters": "true"})
    context = datafusion.SessionContext(config, runtime)
    for table in ("functions", "stack_frames", "samples", "balance"):
        context.register_parquet(table, f"{folder}/{table}/")
    return [row for batch in context.sql(sql).collect() for row in batch.to_pylist()]


def by_duckdb(folder, sql):
    import duckdb

    database = duckdb.connect()
    if limit := os.environ.get("MEMORY"):
        database.execute(f"SET memory_limit = '{int(limit) // 1_000_000}MB'")
    for table in ("functions", "stack_frames", "samples", "balance"):
        database.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{folder}/{table}/*.parquet')")
    answer = database.execute(sql)
    names = [column[0] for column in answer.description]
    return [dict(zip(names, row)) for row in answer.fetchall()]


def main(fleet, rows, *places):
    own, total, joules = tables.truth(int(rows))
    for place in places:
        engine, _, folder = place.partition(":")
        if engine in ("datafusion", "duckdb"):
            sql = subprocess.run([fleet, "report", folder, "--sql"], check=True, capture_output=True, text=True).stdout.rstrip("; \n")
            command = [sys.executable, __file__, engine, folder, sql]
        else:
            command = [fleet, "report", place, "--format", "json", "--limit", "0"]
            if (limit := os.environ.get("MEMORY")) and "://" not in place:
                command += ["--memory", limit]
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        answer = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        if status != 0:
            print(f"{place}: no answer after {seconds:.1f} s, {used.ru_maxrss / 1024:.0f} MB")
            continue
        answer = json.loads(answer)
        if engine in ("datafusion", "duckdb"):
            found = {row["name"]: (row["own"], row["total"]) for row in answer}
        else:
            found = {row["function"]: (row["joules"], row["total_joules"]) for row in answer["rows"]}
            assert answer["balance"]["functions"] == joules, answer["balance"]
        expected = {name: (own.get(name, 0.0), joules) for name, joules in total.items()}
        assert found == expected, f"{place}: {len(found)} functions, {sum(own for own, _ in found.values())} of {joules} J"
        print(f"{place}: {rows} rows, {seconds:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of CPU, {used.ru_maxrss / 1024:.0f} MB; exact", flush=True)


if sys.argv[1] in ("datafusion", "duckdb"):
    ask = by_datafusion if sys.argv[1] == "datafusion" else by_duckdb
    json.dump(ask(sys.argv[2], sys.argv[3]), sys.stdout)
else:
    main(*sys.argv[1:])
