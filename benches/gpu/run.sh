#!/bin/sh
# What eprof says of three kernels in turns on this machine's NVIDIA GPU, beside what each draws alone by NVML's energy
# counter. Needs nvcc, root (for probes), libeprof_cupti_injection.so beside eprof, and two minutes; sets nothing
# of the card. CUPTI is the path of its library, if eprof does not find it. `EPROF=path CUPTI=path run.sh [FOLDER]`
set -e
here=$(cd "$(dirname "$0")" && pwd)
eprof=${EPROF:-eprof}
folder=${1:-$(mktemp -d)}
cd "$folder"
nvcc -O2 -std=c++17 -arch=native -Xcompiler -fno-omit-frame-pointer -o turns "$here/turns.cu" -ldl
for kernel in idle products stream chase; do
    ./turns alone $kernel 3 2>/dev/null
done
for turn in 500 50 5; do
    echo
    "$eprof" record --gpu -o turns-$turn.data ./turns turns $turn 8
    "$eprof" report --by kernel turns-$turn.data 2>/dev/null | sed -n '/^ *joules/,/everything/p'
done
echo
"$eprof" record --gpu --cupti ${CUPTI:+--cupti-lib "$CUPTI"} -o cupti.data ./turns turns 50 8
"$eprof" report --by kernel cupti.data | sed -n '/^ *joules/,/everything/p'
echo "recordings: $folder"
