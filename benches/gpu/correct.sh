#!/bin/bash
# What `eprof gpu calibrate` and `eprof gpu correct` make of this card's own power sensors under loads whose joules NVML's
# energy counter tells. Needs Python 3, nvcc (or TURNS: the path of a built turns.cu), and two and a half minutes; sets
# nothing of the card. correct.py says what it leaves in FOLDER. `EPROF=path TURNS=path correct.sh [FOLDER]`
set -e
here=$(cd "$(dirname "$0")" && pwd)
eprof=${EPROF:-eprof}
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
cd "$folder"
turns=${TURNS:-$PWD/turns}
if [ ! -x "$turns" ]; then
    nvcc -O2 -std=c++17 -arch=native -Xcompiler -fno-omit-frame-pointer -o "$turns" "$here/turns.cu" -ldl
fi

# eprof's own load and reading; it warms the card for what follows.
timeout -k 2 60 "$eprof" gpu calibrate --load --bursts "${BURSTS:-12}" --save live.json >live.txt 2>&1 || echo "gpu calibrate --load: $?"
cat live.txt

# What nvidia-smi writes, beside a load of 0.4 s and rests of as long.
if command -v nvidia-smi >/dev/null; then
    timeout 12 nvidia-smi --query-gpu=timestamp,power.draw,power.draw.average,power.draw.instant --format=csv -lms 5 >smi.csv &
    smi=$!
    REST=1.5 TRACE=smi.trace STEPS=smi.steps timeout -k 2 30 "$turns" square 800 3
    kill $smi 2>/dev/null || true
    wait $smi 2>/dev/null || true
    "$eprof" gpu correct smi.csv >smi.txt 2>&1 || echo "gpu correct smi.csv: $?"
    grep -E '^ +all|error' smi.txt | cut -c1-300 || true
fi

# Halves of 1.37 s: longer than a window of a second, and each switch at another time of a refresh of 100 ms.
REST=2 TRACE=calibration.trace STEPS=calibration.steps timeout -k 2 60 "$turns" square 2740 "${CALIBRATION:-23}"
# Bursts of half of these, and rests of as long.
periods=${PERIODS:-50,100,199.4,200,260,500,800,1000,2000}
REST=2 TRACE=patterns.trace STEPS=patterns.steps timeout -k 2 90 "$turns" square "$periods" "${EACH:-4.4}"
python3 "$here/correct.py" "$eprof" "$periods"
echo "logs: $folder"
