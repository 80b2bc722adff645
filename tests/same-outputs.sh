#!/usr/bin/env bash
# Do two builds of eprof say the same, byte for byte?
#
#     tests/same-outputs.sh OLD NEW
#
# For changes that must change nothing: a file moved, a module split. OLD and NEW are two eprof binaries. Both
# run every verb that reads (report, flamegraph, export, script, doctor on fixture machines, model, gpu, tune on
# tables, completions, man, --help) on the same inputs; standard output, standard error, exit status and every
# file written, with its mode, are compared. One line is printed per case that differs, and at last how many
# cases were compared; the exit status is 1 if any differs. Of differing cases both outputs are kept.
#
# Inputs:
#   - recordings that OLD makes at the start, of eprof's built-in work and of a shell, and damaged copies of them
#     (none where the kernel does not let us sample, which is said);
#   - recordings and tables of other machines in EPROF_SHARED, by default ../shared/data beside the project;
#   - in EPROF_INPUTS: simulated recordings, recordings of GPUs and the machines of `fixtures/machines`, which
#     a test writes once, best from the tree of OLD:
#         EPROF_INPUTS=/tmp/inputs cargo test --test same_outputs -- --ignored
#   - recordings in `fixtures` and the seeds of `tests/fuzz`.
# ONLY=REGEX compares only the cases whose line of arguments matches. JOBS: cases at once, by default one per CPU.
#
# Both builds run one after another by the same path, in the same folder, with the same home and environment, so that
# no path, width or setting differs; each has a cache of its own. Only one thing is taken out of the outputs: the time
# at which a power model was fitted.
set -euo pipefail

[ $# = 2 ] && [ -x "$1" ] && [ -x "$2" ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }

project=$(cd "$(dirname "$0")/.." && pwd)
shared=${EPROF_SHARED:-$project/../shared/data}
inputs=${EPROF_INPUTS:-}
jobs=${JOBS:-$(nproc)}
[ -n "$inputs" ] && inputs=$(cd "$inputs" && pwd)
[ -d "$shared" ] && shared=$(cd "$shared" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/eprof-same.XXXXXX")
keep=
# shellcheck disable=SC2317 # called by the trap
clean_up() { [ -n "$keep" ] || rm -rf "$work"; }
trap clean_up EXIT

mkdir -p "$work"/{old,new}/cache "$work"/{cases,results,recordings,tables,tmp}
cp "$1" "$work/old/eprof"
cp "$2" "$work/new/eprof"

# Runs a command as every case is run: SIDE (whose cache) and HOME, then the command.
pinned() {
    local side=$1 home=$2
    shift 2
    env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$home" XDG_CONFIG_HOME="$home/config" \
        XDG_CACHE_HOME="$work/$side/cache" TMPDIR="$work/tmp" LC_ALL=C TZ=UTC TERM=dumb COLUMNS=100 \
        timeout --kill-after=5 120 "$@"
}
old() { (cd "$work/recordings" && pinned old "$work/home" "$work/old/eprof" "$@"); }

# ---- cases -----------------------------------------------------------------------------------------------
count=0
stdin=/dev/null
# A case: the arguments of eprof. Its standard input is $stdin.
same() {
    local line=$*
    if [ -n "${ONLY:-}" ] && ! [[ "$line" =~ $ONLY ]]; then return; fi
    count=$((count + 1))
    printf '%s\0' "$stdin" "$@" >"$work/cases/$count"
}

# Runs case NUMBER with both builds in the folder NOW, as the binary NOW.bin/eprof, and compares.
compare() {
    local number=$1 now=$2 side result=$work/results/$1 case
    mapfile -d '' -t case <"$work/cases/$number"
    for side in old new; do
        mkdir -p "$now/home" "$now.bin" "$result/$side"
        # eprof names itself in what it proposes to type.
        ln -f "$work/$side/eprof" "$now.bin/eprof"
        local status=0
        (cd "$now" && pinned "$side" "$now/home" "$now.bin/eprof" "${case[@]:1}" <"${case[0]}") \
            >"$result/$side/stdout" 2>"$result/$side/stderr" || status=$?
        echo "$status" >"$result/$side/status"
        (cd "$now" && find . -printf '%m %y %P\n' | LC_ALL=C sort) >"$result/$side/modes"
        mv "$now" "$result/$side/files"
    done
    if [ "${case[1]}" = model ]; then
        find "$result" -name '*.json' -exec sed -i -E 's/("created_unix": )[0-9]+/\1TIME/' {} +
    fi
    printf '%s\n' "$status" >"$work/results/$number.status"
    # Not ended in time, or by a signal.
    if [ "$status" = 124 ] || [ "$status" -ge 128 ] || grep -q "panicked at" "$result/new/stderr"; then
        printf '%s\n' "ended with $status: eprof ${case[*]:1}" >"$work/results/$number.ended"
    fi
    if diff -rq "$result/old" "$result/new" >"$work/results/$number.diff" 2>&1; then
        rm -rf "$result" "$work/results/$number.diff"
    else
        local what
        what=$(sed -E "s!.*$result/(old|new)/([^ ]*).*!\2!; s!^Only in .*/(old|new)/?[^:]*: !!" \
            "$work/results/$number.diff" | sort -u | tr '\n' ' ')
        local given=
        [ "${case[0]}" = /dev/null ] || given=" <${case[0]}"
        echo "differs ($number): eprof ${case[*]:1}$given: $what"
    fi
}

# ---- inputs ----------------------------------------------------------------------------------------------
record() {
    local name=$1
    shift
    if ! old record -o "$work/recordings/$name.data" "$@" >"$work/record.log" 2>&1; then
        echo "not recorded: $name: $(tail -n 1 "$work/record.log")"
        rm -f "$work/recordings/$name.data"
    fi
}

make_recordings() {
    local loop='i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done; ls -lR /usr/bin >/dev/null'
    record demo --call-graph dwarf,4096 --watts 10:65 -- "$work/old/eprof" demo --work --seconds 1
    record demo-fp -z -F 997 -- "$work/old/eprof" demo --work --seconds 1
    record shell --watts 5:40 -- sh -c "$loop & $loop; wait"
    record system -a --duration 0.3 -e cpu-clock -F 499
    local recording=$work/recordings/demo.data damaged=$work/recordings/damaged size part
    [ -f "$recording" ] || return 0
    mkdir -p "$damaged"
    size=$(stat -c %s "$recording")
    for part in 40 104 1000 $((size / 10)) $((size / 2)) $((size - 5000)) $((size - 1)); do
        head -c "$part" "$recording" >"$damaged/first-$part-of.data"
    done
    for part in 0 16 60 200 $((size / 7)) $((size / 3)) $((size / 2 + 3)) $((size - 2000)); do
        cp "$recording" "$damaged/bytes-at-$part.data"
        printf '\377\000\125\252\377\377\377\177' |
            dd of="$damaged/bytes-at-$part.data" bs=1 seek="$part" conv=notrunc status=none
    done
    : >"$damaged/empty.data"
    echo "this is no recording, however long the text may be" >"$damaged/text.data"
}

# ---- verbs on a recording --------------------------------------------------------------------------------
groupings=(function line module thread process command core event kernel domain bucket)

# Every option of the verbs that read recordings. Arguments: the recording, an older one to compare with.
everything() {
    local in=$1 other=$2 by option
    for by in "${groupings[@]}"; do
        same report -i "$in" --by "$by"
        same report -i "$in" --by "$by" --format json --whole
        same report -i "$in" --by "$by" --format csv --children --limit 7
    done
    same report -i "$in" --children
    same report -i "$in" --children --inline --whole --width 132
    same report -i "$in" --inline --limit 0
    same report -i "$in" --by line --no-inline --limit 0
    same report -i "$in" --no-demangle --color always
    same report -i "$in" --callers '^[a-m_]'
    same report -i "$in" --callees 'main|start|work|loop' --format json
    same report -i "$in" --callers no_such_function
    same report -i "$in" --filter 'e' --width 60 -o table.txt
    same report -i "$in" --format collapsed
    same report -i "$in" --format collapsed --no-inline --whole
    same report -i "$in" --format html
    same report -i "$in" --format html -o page.html
    for option in self total joules samples time watts name; do same report -i "$in" --sort "$option" --format csv; done
    for option in joules samples count; do same report -i "$in" --weight "$option"; done
    for option in stored preset self time /no/such/model; do
        same report -i "$in" --model "$option" --format json
    done
    for option in package-0 cores-0 dram-0 cpu none-such; do same report -i "$in" --domain "$option"; done
    same report -i "$in" --event cpu-clock --format json
    same report -i "$in" --event 'CPU_CLK_UNHALTED.THREAD_P'
    same report -i "$in" --thread 'pro|epr|sh' --process '[a-p]' --format json
    same report -i "$in" --through 'a' --children
    same report -i "$in" --static spread --format json --children
    same report -i "$in" --watts 10:65
    same report -i "$in" --watts 65:10
    same report -i "$in" --bucket 50mJ --by bucket --svg buckets.svg --limit 0
    same report -i "$in" --by bucket --bucket 0.2 --format csv --model time
    same report -i "$in" --symfs /no/such/folder --debug-dir /no/such/folder
    same flamegraph -i "$in"
    same flamegraph -i "$in" --reverse -o -
    same flamegraph -i "$in" --whole --title 'a <title>' --weight samples -o t.svg
    same flamegraph -i "$in" --no-inline --thread 'e'
    same flamegraph -i "$in" --diff "$other"
    same flamegraph -i "$in" --diff "$other" --normalize
    for option in none command process thread; do same flamegraph -i "$in" --root "$option" -o -; done
    for option in collapsed speedscope pprof; do
        same export -i "$in" --format "$option"
        same export -i "$in" --format "$option" -o exported --root thread --whole --static spread
    done
    same export -i "$in" --format perf-data
    same export -i "$in" --format perf-data --domain package-0 -o package.data --model preset
    same script -i "$in"
    same script -i "$in" --ns
    stdin=$in same report -i - --format json
    stdin=$in same script -i -
}

# What a recording of another recorder, which has no energy, is good for.
some() {
    local in=$1
    same report -i "$in"
    same report -i "$in" --by line --format csv --watts 10:65
    same report -i "$in" --children --format json --whole
    same report -i "$in" --by thread --children --watts 10:65 --static spread
    same report -i "$in" --by module --format json --no-demangle --sort name
    same report -i "$in" --by bucket --watts 10:65 --format json
    same report -i "$in" --format html -o page.html
    same flamegraph -i "$in" --root process
    same export -i "$in" --format perf-data --watts 10:65
    same export -i "$in" --format pprof -o exported --watts 10:65
    same export -i "$in" --format collapsed --whole
    same script -i "$in" --ns
}

few() {
    same report -i "$1" --by thread --format json --whole
    same report -i "$1" --children
    same script -i "$1"
    same export -i "$1" --format perf-data
}

# ---- verbs without a recording ---------------------------------------------------------------------------
help_pages() {
    local verb
    same --version
    same no-such-verb
    for verb in '' demo record report stat flamegraph export doctor calibrate tune script completions man \
        gpu 'gpu correct' 'gpu calibrate' 'gpu instructions' 'gpu model' 'gpu model fit' 'gpu model validate' \
        'gpu model predict' model 'model fit' 'model validate' 'model show'; do
        # shellcheck disable=SC2086 # a verb may be several words
        same $verb --help
        # shellcheck disable=SC2086
        same $verb -h
        # Of these two it is the name of a program.
        # shellcheck disable=SC2086
        case $verb in record | stat) ;; *) same $verb --no-such-option ;; esac
        # shellcheck disable=SC2086
        [ -z "$verb" ] || same help $verb
    done
    for verb in bash elvish fish powershell zsh; do same completions "$verb"; done
    same man
    same man -o pages
    same report
    same record
    same record --gpu always true
    same record -t 1 -p 1
    same record --cupti --gpu=never true
    same model show sandybridge
    same model show generic --energy 0.01
    same model show
    same model show stored
    same model show /no/such/file
    same gpu instructions --emit-ptx programs
    same gpu instructions --emit-ptx programs --only fma.rn.f32,add.u32 --full --seconds 0.1
    same gpu instructions --only no.such.instruction
    same tune --threads 1..16 --plan -- ./app '{threads}'
    same tune --threads 4..44:4 --freq 1.2..2.2GHz --plan --budget 20 --design latin --runs 9 --seed 3
    same tune --var flags=-O2,-O3 --nodes 20,42,64,86 --plan --design random --runs 5 -- ./app
    same tune --threads 16..1 --plan
}

machines() {
    local machine
    for machine in "$inputs"/machines/*; do
        same doctor --root "$machine"
        same doctor --root "$machine" --json
    done
    same doctor --root /no/such/folder
}

gpu_recordings() {
    local in
    for in in "$inputs"/gpu/*.data; do
        same gpu correct "$in"
        same gpu correct "$in" --gpu gpu-1 --sensor rc:800ms --format json --output corrected.csv
        same gpu correct "$in" --gpu 0 --sensor k20 --as-published
        same gpu calibrate "$in" --save sensor.json
        same gpu calibrate "$in" --gpu gpu-1
        few "$in"
        same report -i "$in" --by kernel
    done
}

tune_tables() {
    local table
    printf 'threads,freq_GHz,seconds,joules\n' >"$work/tables/runs.csv"
    awk 'BEGIN { for (t = 4; t <= 44; t += 13) for (f = 12; f <= 22; f += 5) {
        m = t < 20 + t / 10 ? t : 20 + t / 10; s = 100 / m / (f / 10) ^ 0.7
        printf "%d,%.1f,%.4f,%.3f\n", t, f / 10, s, s * (80 + t * f * f / 100) } }' >>"$work/tables/runs.csv"
    table=$work/tables/runs.csv
    local space=(--threads 4..44:4 --freq 1.2..2.2GHz)
    same tune --runs-csv "$table"
    same tune --runs-csv "$table" "${space[@]}" --max-slowdown 20% --svg front.svg --save-runs saved.csv
    same tune --runs-csv "$table" "${space[@]}" --format csv --level 90%
    same tune --runs-csv "$table" "${space[@]}" --min-energy --formula paper
    same tune --runs-csv "$table" "${space[@]}" --edp --formula 'log(threads) + freq' --default threads=16,freq=1.2
    same tune --runs-csv "$table" "${space[@]}" --plan --budget 20
    same tune --runs-csv "$table" "${space[@]}" --measured-error 3% --predicted-error 8% --quiet
    stdin=$table same tune --runs-csv - --hold-out
    same tune --runs-csv "$table" --where threads=4
    same tune --runs-csv "$table" --time no_such_column
    [ -d "$shared" ] || return 0
    for table in "$shared"/multicores-time-energy/raw/{amd/data-bt,xeon/data-ep,pi3/data-km,amd/data-km}.csv; do
        same tune --runs-csv "$table" --hold-out
        same tune --runs-csv "$table" --svg front.svg --format csv --edp
    done
    table=$shared/Energy-Languages-PowerCap/measurements.csv
    same tune --runs-csv "$table"
    same tune --runs-csv "$table" --where Language=Rust --where Program=n-body --time Time:ms --svg front.svg
    table=$shared/zeus/summary_power_v100.csv
    same tune --runs-csv "$table" --where network=shufflenetv2 --where optimizer=adam
}

model_tables() {
    awk 'BEGIN { print "job,watts,cycles,instructions,LLC-load-misses"
        for (i = 0; i < 60; i++) { c = 1e9 * (1 + i % 7); n = c * (0.5 + (i * 37 % 11) / 8); m = 1e6 * (i * 13 % 17)
            printf "job%d,%.4f,%.0f,%.0f,%.0f\n", i % 6, 12 + c * 4e-9 + n * 1e-9 + m * 2e-8 + (i * 29 % 7) / 20, c, n, m } }' \
        >"$work/tables/model.csv"
    local table=$work/tables/model.csv verb options=(--power watts --workload job)
    same model fit "$table" "${options[@]}" -o model.json --cpu a-cpu --roles clk=cycles,inst=instructions
    same model fit "$table" "${options[@]}" --store --cpu a-cpu
    same model fit "$table" "${options[@]}" --use-all --signed --absolute --domain dram
    same model fit "$table" "${options[@]}" --events cycles,instructions --prior generic --prior-strength 0.5
    same model fit "$table"
    same model fit "$table" --power no_such_column
    same model validate "$table" "${options[@]}"
    same model validate "$table" "${options[@]}" --protocol blocks:4 --max-events 2 --format json
    same model validate "$table" --power watts --protocol forward:60
    (cd "$work/tables" && pinned old "$work/home" "$work/old/eprof" model fit model.csv "${options[@]}" \
        -o model.json --cpu a-cpu >/dev/null)
    same model show "$work/tables/model.json"
    [ -d "$shared" ] || return 0
    table=$shared/gemstone-applypower/asrtpm-A15-powmon-data.given.csv
    options=(--power 'Power A15' --workload 'Workload Name' --frequency 'Frequency A15')
    same model fit "$table" "${options[@]}"
    same model fit "$table" "${options[@]}" --where 'Frequency A15=1000' --max-events 2 -o model.json --cpu arm
    same model fit "$shared"/canuto-power-modelling/INTEL_Xeon_X5650/validation/*.csv --power powerWatts
    same model validate "$shared"/canuto-power-modelling/INTEL_Xeon_X5650/validation/*.csv --power powerWatts \
        --events instructions,cpu-cycles,LLC-loads
    table=$shared/kepler-model-db/preprocess_abs_default_rapl_CounterOnly.given.csv
    options=(--power package_power --except packge_ratio_package)
    same model fit "$table" "${options[@]}" --time timestamp
    same model validate "$table" "${options[@]}" --protocol forward:60 --format json
    table=$shared/rapl_validation/derived_run_totals.given.csv
    options=(--energy e_pkg_j --duration elapsed_s --events cycles,instructions,cache_misses,cache_refs --workload bench)
    for verb in fit validate; do same model "$verb" "$table" "${options[@]}" --where machine=haswell-ep; done
    same model fit "$shared"/rapl_validation/phase_plots/haswellian-i5/{hpl_mkl,hpl_atlas,sleep}/*.perf
    same model validate "$shared"/rapl_validation/phase_plots/haswellian-i5/{hpl_mkl,hpl_atlas,sleep}/*.perf \
        --power power/energy-ram/ --except instructions
    same model fit "$shared"/rapl_validation/phase_plots/haswell-ep/hpl_atlas/hpl_atlas.perf.phase \
        --power power/energy-ram/
    same model fit "$shared/2021-rome-ee/roco2_conway.given.tsv" --power elab.conway.power
}

gpu_tables() {
    [ -d "$shared" ] || return 0
    local trace sensors=$shared/gpu-power-benchmark real=$shared/NV-DVFS-Benchmark/v100-dvfs-real-profile.csv
    for trace in "$sensors"/{rtx3090-step,a5000-step,a100-5050}; do
        for column in power.draw.instant power.draw.average; do
            same gpu calibrate "$trace.nvsmi.csv" --column "$column" --save sensor.json
            same gpu calibrate "$trace.nvsmi.csv" --column "$column" --meter "$trace.meter.csv" \
                --steps "$trace.load-steps.csv"
            same gpu correct "$trace.nvsmi.csv" --column "$column" --meter "$trace.meter.csv" \
                --steps "$trace.load-steps.csv" --sensor boxcar:1s --format json --output corrected.csv
        done
        same gpu correct "$trace.nvsmi.csv" --sensor rc:53ms --threshold 100
        same gpu correct "$trace.nvsmi.csv" --sensor k20 --as-published --format json
    done
    for trace in "$shared"/cuda_test-nvsmi/*.csv; do
        same gpu calibrate "$trace"
        same gpu correct "$trace" --output corrected.csv
    done
    same gpu correct "$real"
    local options=(--target average_power --group benchmark)
    same gpu model fit "$real" "${options[@]}" --methods linear --save model.json --figure figure.svg
    same gpu model fit "$real" "${options[@]}" --methods published --exclude time
    same gpu model validate "$real" "${options[@]}" --methods published --output rows.csv
    same gpu model fit "$shared/accelwattch/hw_perf.csv" --target Num_Idle_SMs --group Benchmark
    same gpu model fit "$shared/gpupowermodel/v1.0_HPCA2018__example_files__micro_gtxtitanx.csv" --methods linear
    same gpu model fit "$shared/gpupowermodel/v2.0_TPDS2019__example_files__model_gtxtitanx.csv"
    (cd "$work/tables" && pinned old "$work/home" "$work/old/eprof" gpu model fit "$real" "${options[@]}" \
        --methods published --save gpu.json >/dev/null)
    same gpu model predict "$work/tables/gpu.json" "$real" "${options[@]}"
    same gpu model validate "$real" "${options[@]}" --model "$work/tables/gpu.json"
}

# ---- all together ----------------------------------------------------------------------------------------
began=$SECONDS
make_recordings
thoroughly=() briefly=()
for recording in "$work"/recordings/*.data "$inputs"/simulated/*.data; do
    [ -f "$recording" ] || continue
    case $(basename "$recording") in
    demo.data | lossy.data | two-packages.data) thoroughly+=("$recording") ;;
    *) briefly+=("$recording") ;;
    esac
done
[ -n "$inputs" ] || echo "no EPROF_INPUTS: no simulated recordings, no machines, no recordings of GPUs"
[ -d "$shared" ] || echo "no recordings and tables of other machines ($shared)"

help_pages
for ((i = 0; i < ${#thoroughly[@]}; i++)); do
    everything "${thoroughly[i]}" "${thoroughly[(i + 1) % ${#thoroughly[@]}]}"
done
for recording in "${briefly[@]}"; do some "$recording"; done
for recording in "$work"/recordings/damaged/*.data; do few "$recording"; done
few /no/such/recording
few "$work/recordings"
while IFS= read -r recording; do some "$recording"; done < <(
    find "$project/fixtures" -name '*.data' | sort
    for folder in autofdo hotspot linux-perf-data perf_data_converter perfparser; do
        [ -d "$shared/$folder" ] || continue
        find "$shared/$folder" -type f ! -name '*.buildids' ! -name '*.txt' ! -name '*.md' | sort
    done
)
while IFS= read -r recording; do few "$recording"; done < <(
    find "$project/tests/fuzz/seeds" -type f 2>/dev/null | sort
)
if [ -n "$inputs" ]; then
    machines
    gpu_recordings
fi
tune_tables
model_tables
gpu_tables

for ((worker = 1; worker <= jobs; worker++)); do
    (
        for ((number = worker; number <= count; number += jobs)); do
            compare "$number" "$work/now.$worker"
        done
    ) &
done
wait

different=$(find "$work/results" -name '*.diff' | wc -l)
compared=$(find "$work/results" -name '*.status' | wc -l)
cat "$work"/results/*.ended 2>/dev/null || true
echo "exit statuses: $(cat "$work"/results/*.status | sort -n | uniq -c | awk '{printf "%s%d x %s", sep, $1, $2; sep = ", "}')"
echo "$compared cases compared in $((SECONDS - began)) s, $different differ"
if [ "$different" != 0 ]; then
    keep=yes
    echo "outputs of both: $work/results/NUMBER/{old,new}"
fi
[ "$compared" = "$count" ] || { echo "only $compared of $count cases were run"; exit 1; }
[ "$different" = 0 ] || exit 1
[ "$count" != 0 ] || { echo "no case"; exit 1; }
