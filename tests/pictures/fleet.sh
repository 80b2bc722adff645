#!/usr/bin/env bash
# Makes the README's picture of a fleet: the program of the other pictures, recorded on this machine as if by six nodes of a
# job, one after the other, half of them with another version of it. Where this machine has no meters the joules are
# estimated, and the picture says so.
#
#     tests/pictures/fleet.sh [FOLDER]      the picture, into fixtures/pictures unless FOLDER is named
#
# EPROF names an eprof that is built, beside which an eprof-fleet lies; else both are, with --release.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
pictures=$(realpath -m "${1:-$root/fixtures/pictures}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -z "${EPROF:-}" ]; then
    (cd "$root" && cargo build --release --locked -p eprof -p eprof-fleet)
    EPROF=${CARGO_TARGET_DIR:-$root/target}/release/eprof
fi
mkdir -p "$pictures"
cd "$work"
# The newer version is not optimised.
for version in 1 2; do
    gcc -O$((4 - 2 * version)) -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread -o "photos$version" "$here/photos.c" -lm
done
for node in 1 2 3 4 5 6; do
    version=$((1 + node % 2))
    SLURM_JOB_ID=4711 SLURMD_NODENAME=node$node "$EPROF" record -q --label version=$version -o "$node.data" \
        "./photos$version" 1500 >/dev/null
done
"$EPROF" export --format parquet -o tables ./*.data
"$EPROF" fleet flamegraph tables --by node,label:version -o "$pictures/fleet.svg"
"$EPROF" fleet top tables --by node,label:version
ls -l "$pictures/fleet.svg"
