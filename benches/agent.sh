#!/bin/sh
# What `eprof agent` costs: beside a load of one busy CPU and of short processes, for so many seconds.
#
#   benches/agent.sh [EPROF [SECONDS [PROCESSES_PER_SECOND [AGENT OPTIONS...]]]]
#
# Prints CPU share of one core, how many processes were started, memory at its most, what was lost, the balance of all windows,
# and what the estimate or the meters say of the whole: by `eprof stat` of the same time. With DuckDB (PYTHON names a Python that
# has it) the balance of each window and of their sum is added up from the tables. An hour: SECONDS 3600.
set -eu
eprof=${1:-target/release/eprof}
seconds=${2:-300}
rate=${3:-20}
[ $# -gt 3 ] && shift 3 || shift $#
folder=$(mktemp -d)
cc -O2 -o "$folder/processes" "$(dirname "$0")/processes.c"
agent= spin= short= watch=
end() {
    status=$?
    # Of a run that ends half way, what the agent said may tell why.
    [ $status -eq 0 ] || { echo "exit status $status; the agent said:"; cat "$folder/said"; } >&2 || :
    for process in $agent $spin $short $watch; do kill "$process" 2>/dev/null || :; done
    rm -rf "$folder"
}
trap end EXIT
trap 'exit 130' INT TERM
sh -c 'while :; do :; done' & spin=$!
"$folder/processes" "$rate" "$seconds" >"$folder/started" & short=$!
"$eprof" agent -o "$folder/tables" --listen 127.0.0.1:0 "$@" 2>"$folder/said" & agent=$!
until grep -q 'counters: ' "$folder/said"; do kill -0 $agent; sleep 0.1; done
url=$(sed -n 's/.*counters: //p' "$folder/said")
started=$(date +%s)
# Names are looked up in a moment in each window.
( most=0
  while now=$(sed -n 's/RssAnon:[^0-9]*\([0-9]*\).*/\1/p' /proc/$agent/status 2>/dev/null) && [ -n "$now" ]; do
      [ "$now" -gt $most ] && most=$now && echo "$most" >"$folder/most"
      sleep 0.02
  done ) & watch=$!
"$eprof" stat -a -- sleep "$seconds" 2>"$folder/stat" >>"$folder/stat" || :
curl -s "$url" >"$folder/metrics"
ended=$(date +%s)
most=$(sed -n 's/VmHWM:[^0-9]*//p' /proc/$agent/status)
ticks=$(awk '{print $14 + $15}' /proc/$agent/stat)
kill -TERM $agent
wait $agent || echo "exit status $?"
agent=
echo "CPU: $(echo "$ticks $started $ended" | awk -v hertz="$(getconf CLK_TCK)" \
    '{printf "%.2f s in %d s, %.3f %% of one core", $1 / hertz, $3 - $2, 100 * $1 / hertz / ($3 - $2)}')"
echo "short processes: $(cat "$folder/started")"
echo "anonymous memory at most: $(cat "$folder/most") kB; with pages of files whose symbols were read: $most"
grep -E '^eprof_(agent_(windows|lost|joules|restarts)|domain_(part_)?joules|window_seconds)' "$folder/metrics"
echo "tables: $(du -sk "$folder/tables" | cut -f1) kB, $(ls "$folder/tables/balance" | wc -l) windows"
"${PYTHON:-python3}" "$(dirname "$0")/windows.py" "$folder/tables" || echo "windows.py: exit status $?"
echo "what the agent said:"; cat "$folder/said"
echo "eprof stat of the whole:"; cat "$folder/stat"
