#!/usr/bin/env bash
# Makes the README's pictures: a program recorded in the emulated machine (its counters and meters are simulated, what
# eprof reads there is measured), by default options, and shown by eprof. Needs what the tests of the emulated machine need, and
# Chromium (CHROMIUM names one) with Node for the page. The report is printed: README has its watts beside what the machine was
# told that the functions draw (the table of kinds in tests/guest/machine/README.md).
#
#     tests/pictures/make.sh [FOLDER]      the pictures, into fixtures/pictures unless FOLDER is named
#
# EPROF names an eprof that is built; else one is, with --release.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
pictures=$(realpath -m "${1:-$root/fixtures/pictures}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -z "${EPROF:-}" ]; then
    (cd "$root" && cargo build --release --locked)
    EPROF=${CARGO_TARGET_DIR:-$root/target}/release/eprof
fi
mkdir -p "$pictures" "$work/root/guest"
cd "$work"
cp "$EPROF" eprof && strip eprof
gcc -O2 -g -static -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread -o photos "$here/photos.c" -lm

"$root/tests/guest/machine/guest.sh" -q --timeout 300 --cpu SandyBridge --icount shift=3 \
    -f eprof -f photos --bring /guest/photos.data -- \
    './eprof record -q -o photos.data ./photos 60 > /dev/null'
cp photos root/guest/

show() { "$EPROF" "$@" -i photos.data --symfs root; }
show flamegraph --colors watts -o "$pictures/energy.svg"
show report --limit 9
mkdir -p src
cp "$here/photos.c" .
show view --no-open --source="$here" -o page.html
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
if [ -n "$chromium" ]; then
    EPROF_PICTURES=$work node "$root/tests/browser/main.js" "$chromium" - bare page.html
    cp bare-desktop.png "$pictures/page.png"
else
    echo "no Chromium: the pictures of the page are left as they are" >&2
fi
ls -l "$pictures"
