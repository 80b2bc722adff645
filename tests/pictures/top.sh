#!/usr/bin/env bash
# Makes the README's picture of `eprof top`: the program of the other pictures, running in the emulated machine, whose meters and
# counters are simulated. Needs what the tests of the emulated machine need, tmux and Python.
#
#     tests/pictures/top.sh [FOLDER]      the picture, into fixtures/pictures unless FOLDER is named
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
mkdir -p "$pictures" "$work/host/usr/lib/terminfo/t" "$work/host/usr/lib/locale"
cd "$work"
cp "$EPROF" eprof && strip eprof
gcc -O2 -g -static -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread -o photos "$here/photos.c" -lm
# What tmux must know there of terminals and letters.
cp "$(find /usr/share/terminfo /lib/terminfo -name tmux-256color 2>/dev/null | head -1)" host/usr/lib/terminfo/t/
cp -r /usr/lib/locale/C.utf8 host/usr/lib/locale/

cat >inside <<'INSIDE'
set -e
PATH=$PWD:$PATH
mkdir -p /dev/pts && mount -t devpts devpts /dev/pts
export LC_ALL=C.UTF-8 TERM=tmux-256color TERMINFO=/usr/lib/terminfo SHELL=/bin/sh
tmux -u new-session -d -x 112 -y 24 'TERM=tmux-256color COLORTERM=truecolor ./eprof top -a || sleep 60'
# What the machine takes at rest; then the program. The emulated machine is slow: names take some seconds.
sleep 12
./photos 100000 >/dev/null & photos=$!
sleep 40
# Who calls the second function.
tmux send-keys Down c
sleep 10
tmux capture-pane -N -e -p >top.txt
tmux kill-server
kill $photos
INSIDE
"$root/tests/guest/machine/guest.sh" -q --timeout 550 --cpu SandyBridge --icount shift=1 -d host \
    -f eprof -f photos -f inside -f "$(command -v tmux)" --bring /guest/top.txt -- 'sh ./inside'
"$here/terminal.py" "eprof top" <top.txt >"$pictures/top.svg"
cat top.txt
ls -l "$pictures/top.svg"
