"""Writes the tables of a made-up fleet whose joules are known, as many rows as wanted, by DuckDB (pip install duckdb).

tables.py DIR ROWS

Recording j (250,000 rows, 1.4 MB) is an hour of node j % 64. It has 5,000 of 50,000 stacks, 50 rows of each. A stack has 25 frames: its leaf is one
of 8,000 functions, the 24 above it are of 1,200 others. Rows of stack s have (1 + s % 8) / 1024 J, and beside it so much more or less in turn
that its rows look measured and its sum stays as it is. All are multiples of 2^-30 J, which doubles add without rounding, so that
`truth` is exact.
"""

import os
import sys

ROWS_OF_RECORDING, STACKS, STACKS_OF_RECORDING, NODES = 250_000, 50_000, 5_000, 64
LEAVES, DEPTH, WIDTH = 8_000, 25, 50
ROUNDS = ROWS_OF_RECORDING // STACKS_OF_RECORDING
BLOCKS = STACKS // STACKS_OF_RECORDING
START = 1_767_225_600  # 2026-01-01


def truth(rows):
    """Own and total joules by function, and the sum."""
    recordings = rows // ROWS_OF_RECORDING
    own, total = {}, {}
    for stack in range(STACKS):
        times = recordings // BLOCKS + (recordings % BLOCKS > stack // STACKS_OF_RECORDING)
        joules = times * ROUNDS * (1 + stack % 8) / 1024
        leaf = f"leaf_{stack % LEAVES}"
        own[leaf] = own.get(leaf, 0.0) + joules
        total[leaf] = total.get(leaf, 0.0) + joules
        for depth in range(DEPTH - 1):
            name = f"inner_{depth}_{stack % WIDTH}"
            total[name] = total.get(name, 0.0) + joules
    return own, total, sum(own.values())


def write(folder, rows):
    import duckdb

    assert rows % ROWS_OF_RECORDING == 0, f"a multiple of {ROWS_OF_RECORDING} rows"
    database = duckdb.connect()
    database.execute("SET preserve_insertion_order = true")
    for table in ("functions", "stack_frames", "samples", "balance"):
        os.makedirs(f"{folder}/{table}", exist_ok=True)

    def copy(table, recording, select):
        path = f"{folder}/{table}/{recording + 1:016x}.parquet"
        options = f"""FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE 65536,
            KV_METADATA {{'eprof.schema.version': '1', 'eprof.table': '{table}'}}"""
        database.execute(f"COPY ({select}) TO '{path}' ({options})")

    # Ids are hashes, as those of recordings: they do not compress.
    database.execute("CREATE MACRO id(kind, n) AS (hash(kind || n::VARCHAR) >> 1)::BIGINT")
    for recording in range(rows // ROWS_OF_RECORDING):
        node = recording % NODES
        time = f"make_timestamptz({(START + recording // NODES * 3600) * 1_000_000})"
        end = f"make_timestamptz({(START + recording // NODES * 3600 + 3600) * 1_000_000})"
        block = recording % BLOCKS * STACKS_OF_RECORDING
        stack = f"{block} + i * 1999 % {STACKS_OF_RECORDING}"
        host = f"'node-{node:02}' AS node, 'boot of {node:02}' AS boot"
        wobble = "((hash(s * 64 + r // 2) % 1048576)::BIGINT * (1 - 2 * (r % 2)))::DOUBLE / 1073741824"
        copy("samples", recording, f"""
            SELECT {recording + 1}::BIGINT AS recording, '' AS job, '' AS step, {host}, -1::BIGINT AS rank, '' AS pod,
              '/system.slice/service-' || r % 10 || '.service' AS cgroup, chr(10) || 'version=' || {recording} % 2 || chr(10) AS labels,
              'service-' || r % 10 AS process, 'worker-' || r % 5 AS comm, {time} AS time, id('stack', s) AS stack_id,
              'package-0' AS domain, 1::INTEGER AS is_top, 'cycles' AS event, 'measured' AS method,
              (1 + s % 8) / 1024.0::DOUBLE + {wobble} AS joules, ((1 + s % 8) / 1024.0::DOUBLE) ** 2 AS variance,
              0.9 * ((1 + s % 8) / 1024.0::DOUBLE) ** 2 AS chance,
              (1000000 + hash(r * 50021 + s) % 4096)::BIGINT AS cpu_ns, 1::BIGINT AS samples
            FROM (SELECT ({stack})::BIGINT AS s, r::BIGINT AS r FROM range({ROUNDS}) AS rounds(r), range({STACKS_OF_RECORDING}) AS numbers(i)
              ORDER BY r, i)""")
        stacks = f"(SELECT ({block} + i)::BIGINT AS s FROM range({STACKS_OF_RECORDING}) AS numbers(i))"
        name = f"CASE WHEN d = {DEPTH - 1} THEN 'leaf_' || s % {LEAVES} ELSE 'inner_' || d || '_' || s % {WIDTH} END"
        copy("stack_frames", recording, f"""
            SELECT id('stack', s) AS stack_id, id('function', {name}) AS function_id, d::BIGINT AS depth,
              (d = {DEPTH - 1})::INTEGER AS is_leaf, 1::INTEGER AS is_first
            FROM {stacks}, range({DEPTH}) AS depths(d) ORDER BY s, d""")
        copy("functions", recording, f"""
            SELECT DISTINCT id('function', name) AS function_id, name, '/usr/bin/service' AS module, 'c0ffee' AS build_id, '' AS file, 0::BIGINT AS line
            FROM (SELECT {name} AS name FROM {stacks}, range({DEPTH}) AS depths(d))""")
        functions = ROUNDS * sum((1 + stack % 8) / 1024 for stack in range(block, block + STACKS_OF_RECORDING))
        copy("balance", recording, f"""
            SELECT {recording + 1}::BIGINT AS recording, {host}, 'package-0' AS domain, 1::INTEGER AS is_top, 'measured' AS method,
              {time} AS window_start, {end} AS window_end, {functions + 1024 + 16}::DOUBLE AS measured, {functions}::DOUBLE AS functions,
              1024::DOUBLE AS static, 8::DOUBLE AS others, 4::DOUBLE AS recorder, 4::DOUBLE AS lost""")


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]))
