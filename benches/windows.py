"""Adds up the windows that an agent wrote, by DuckDB (pip install duckdb): windows.py DIR

Each window's parts have to be what was measured in it, and its samples its functions; windows have to follow each other without a
gap. Prints how far off they are, and the sums of all; ends with status 1 where a joule is missing or twice.
"""

import sys

import duckdb

PARTS = ("functions", "static", "others", "recorder", "lost")
# Of what was measured: as `eprof report` has it.
TOLERANCE = 1e-9


def main(folder):
    def ask(sql):
        return duckdb.sql(sql).fetchall()

    balance, samples = (f"read_parquet('{folder}/{table}/*.parquet')" for table in ("balance", "samples"))
    parts = " + ".join(f'"{part}"' for part in PARTS)
    # Of each domain of each window: a domain that lies in another one has its own balance.
    windows, of_parts, of_samples = ask(f"""
        SELECT COUNT(*), MAX(ABS({parts} - measured) / measured), MAX(ABS(COALESCE(j, 0) - functions) / measured)
        FROM {balance} LEFT JOIN (SELECT recording, domain, SUM(joules) AS j FROM {samples} GROUP BY ALL) USING (recording, domain)
        WHERE measured > 0""")[0]
    times = ask(f"SELECT DISTINCT epoch_us(window_start), epoch_us(window_end) FROM {balance} ORDER BY ALL")
    gaps = [(after[0] - before[1]) / 1e6 for before, after in zip(times, times[1:]) if after[0] != before[1]]
    measured, *sums = ask(f"""
        SELECT SUM(measured), {', '.join(f'SUM("{part}")' for part in PARTS)} FROM {balance} WHERE is_top = 1""")[0]
    in_samples = ask(f"SELECT SUM(joules) FROM {samples} WHERE is_top = 1")[0][0]
    of_all = max(abs(sum(sums) - measured), abs(in_samples - sums[0])) / measured
    print(f"{len(times)} windows in {(times[-1][1] - times[0][0]) / 1e6:.1f} s: {measured:.1f} J = "
          + " + ".join(f"{part} {joules:.1f}" for part, joules in zip(PARTS, sums)))
    print(f"off by, of what was measured: parts of a window {of_parts:.1e} at most, its samples {of_samples:.1e}, "
          f"the sums of {windows} balances {of_all:.1e}")
    print(f"gaps between windows: {', '.join(f'{gap:.6f} s' for gap in gaps) or 'none'}")
    return max(of_parts, of_samples, of_all) <= TOLERANCE and not gaps


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1]))
