#!/usr/bin/env bash
# What `eprof top` takes of a core, in a terminal (tmux) beside two busy processes: its CPU time over a while, and its memory.
#
#     benches/top.sh EPROF SECONDS [options of eprof top; -p watches one of the two processes]
set -euo pipefail
eprof=$(realpath "$1") seconds=$2
shift 2
work=$(mktemp -d)
socket=eprof-top-bench-$$
busy=()
clean() {
    tmux -L "$socket" kill-server 2>/dev/null || true
    kill "${busy[@]}" 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT
for _ in 1 2; do
    timeout $((seconds + 60)) sh -c 'while :; do i=$((i + 1)); done' &
    busy+=($!)
done
options=()
for option in "$@"; do
    options+=("$option")
    [ "$option" != -p ] || options+=("$(pgrep -P "${busy[0]}" sh)")
done
tmux -L "$socket" -f /dev/null new-session -d -x 120 -y 40 \
    "echo \$\$ > $work/pid; exec env LC_ALL=C.UTF-8 $eprof top ${options[*]}"
# The first windows look up all names.
sleep 10
pid=$(cat "$work/pid")
ticks() { awk '{print $14 + $15}' "/proc/$pid/stat"; }
memory() { awk '/VmRSS/{print $2}' "/proc/$pid/status"; }
before=$(ticks) first=$(memory)
sleep "$seconds"
after=$(ticks) last=$(memory)
awk -v ticks=$((after - before)) -v per="$(getconf CLK_TCK)" -v seconds="$seconds" -v first="$first" -v last="$last" \
    'BEGIN{printf "eprof top: %.2f %% of a core over %d s, %.1f to %.1f MB\n", 100 * ticks / per / seconds, seconds, first / 1e3, last / 1e3}'
