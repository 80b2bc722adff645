#!/usr/bin/env bash
# guest.sh - boot a real Linux kernel under QEMU (TCG, no KVM needed) that offers hardware
# performance events and RAPL energy counters through the kernel's own interfaces, run one
# command line in it, print its output and exit with its exit status.
#
#   x86_64 (default)  simulated PMU, RAPL and ground truth: module simpmu (see README.md)
#   arm64             QEMU's emulated PMUv3 (cycles, instructions); simulators on request (-m, --sim)
#
# usage: guest.sh [options] [--] COMMAND LINE...       (run by /bin/sh in the guest, in /guest)
#   --arch A        x86_64 (default) or arm64
#   -f FILE[:NAME]  put FILE in the guest as /guest/NAME (mode kept; default: its base name);
#                   for a dynamically linked native program its libraries and loader go along
#   -d DIR          put the tree DIR at / of the guest (so DIR/usr/lib/x becomes /usr/lib/x)
#   --sim 'P=V ...' load simpmu with these parameters (x86_64 loads it without parameters anyway)
#   --no-sim        do not load simpmu
#   -m 'MOD [param=value ...]'  insmod a module before the command: simpmu, simhw or simpower
#                   (built when needed) or the path of a .ko file
#   --perf          also put Debian's perf (with libraries) in the guest
#   --phases        also put the test workload in the guest, as /guest/phases
#   --flavour F     cloud (default, boots fastest) or generic
#   --icount SPEC   QEMU -icount: time counts instructions, runs are repeatable, CPUs take turns;
#                   arm64 default shift=1,sleep=off; x86_64 default none, and one CPU with it
#   --no-icount     run without -icount
#   --cpu C         default max (x86_64), cortex-a57 (arm64)
#   --smp N[,sockets=S]  --mem MiB  --timeout SECONDS        default 2, 1024, 120
#   --user U        run the command as U (root, default, or tester: uid 1000, no capabilities)
#   --paranoid N    kernel.perf_event_paranoid, default -1
#   --bring PATH    after the command, write guest file PATH (base64 over the console) into the cwd
#   --build         prepare everything for these options (downloads, modules), run nothing
#   -v              show the guest kernel's console too
#   -q              do not print the line with the wall time
# Cache of packages, kernels and built modules: $EPROF_GUEST_CACHE (default ~/.cache/eprof-guest).
# The host is Debian 12, x86-64. Missing host tools (qemu, cpio, gcc-12, make) are installed with
# apt-get, which needs root, as does adding the arm64 architecture; everything else does not.
# Exit status: the command's; 125 when the guest gave none (panic, timeout); 2 for usage; 77 when
# packages or tools that it needs cannot be had here.
set -eEuo pipefail
HERE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
CACHE=${EPROF_GUEST_CACHE:-$HOME/.cache/eprof-guest}
ARCH=x86_64 FLAV=cloud ICOUNT=default CPU= SMP= MEM=1024 TMO=120 PARANOID=-1 PERF=0 PHASES=0 VERB=0 QUIET=0 GUSER=root
SIM=auto SIMPAR= BUILD=0
FILES=() DIRS=() MODS=() BRING=()
while [ $# -gt 0 ]; do case $1 in
  --arch) ARCH=$2; shift 2;;
  -f) FILES+=("$2"); shift 2;; -d) DIRS+=("$2"); shift 2;; -m) MODS+=("$2"); shift 2;;
  --sim) SIM=1 SIMPAR=$2; shift 2;; --no-sim) SIM=0; shift;;
  --perf) PERF=1; shift;; --phases) PHASES=1; shift;; --build) BUILD=1; shift;;
  --flavour) FLAV=$2; shift 2;; --no-icount) ICOUNT=; shift;;
  --icount) ICOUNT=$2; shift 2;; --cpu) CPU=$2; shift 2;; --smp) SMP=$2; shift 2;;
  --mem) MEM=$2; shift 2;; --timeout) TMO=$2; shift 2;; --paranoid) PARANOID=$2; shift 2;;
  --user) GUSER=$2; shift 2;; --bring) BRING+=("$2"); shift 2;; -v) VERB=1; shift;; -q) QUIET=1; shift;;
  -h|--help) sed -n '2,/^set -euo/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 0;; --) shift; break;;
  -*) echo "guest.sh: unknown option $1" >&2; exit 2;; *) break;; esac; done
[ $# -gt 0 ] || [ $BUILD = 1 ] || { echo "guest.sh: no command" >&2; exit 2; }
case $ARCH in
  x86_64|amd64) ARCH=x86_64 DARCH=amd64 TRIPLE=x86_64-linux-gnu KARCH=x86 CROSS= QEMU=qemu-system-x86_64 QPKG=qemu-system-x86
    HCC=gcc-12 HCCPKG=gcc-12; [ "$ICOUNT" != default ] || ICOUNT=; CPU=${CPU:-max}; [ $SIM != auto ] || SIM=1;;
  arm64|aarch64) ARCH=arm64 DARCH=arm64 TRIPLE=aarch64-linux-gnu KARCH=arm64 CROSS=aarch64-linux-gnu- QEMU=qemu-system-aarch64 QPKG=qemu-system-arm
    HCC=aarch64-linux-gnu-gcc-12 HCCPKG=gcc-12-aarch64-linux-gnu
    [ "$ICOUNT" != default ] || ICOUNT=shift=1,sleep=off; CPU=${CPU:-cortex-a57}; [ $SIM != auto ] || SIM=0;;
  *) echo "guest.sh: unknown architecture $ARCH" >&2; exit 2;; esac
[ "$SIM" = 0 ] || MODS=("simpmu $SIMPAR" ${MODS[@]+"${MODS[@]}"})

# x86_64: with -icount the kernel does not get past bringing up a second CPU
if [ -z "$SMP" ]; then if [ $ARCH = x86_64 ] && [ -n "$ICOUNT" ]; then SMP=1; else SMP=2; fi; fi
mkdir -p "$CACHE/deb" "$CACHE/$ARCH"; CACHE=$(cd "$CACHE" && pwd); AC=$CACHE/$ARCH
exec 9> "$CACHE/lock"; flock 9        # one preparation at a time; released before the guest boots

# Nothing fails without a word.
on_error='echo "guest.sh: line $LINENO: status $? of: $BASH_COMMAND" >&2'
trap "$on_error" ERR
# Up to the boot, what fails is what is missing here.
trap 'rc=$?; [ $rc = 0 ] || [ $rc = 2 ] || { echo "guest.sh: this host lacks what the guest is made of (see above)" >&2; exit 77; }' EXIT
command -v apt-get >/dev/null || { echo "guest.sh: packages come from Debian, by apt-get, which is not here" >&2; exit 77; }

apt_ready() {   # package lists for the guest's architecture, once
  [ -z "${APT_READY:-}" ] || return 0
  { [ "$(dpkg --print-architecture)" = "$DARCH" ] || dpkg --print-foreign-architectures | grep -qx "$DARCH"; } ||
    dpkg --add-architecture "$DARCH"
  case "$(apt-cache policy "busybox-static:$DARCH" 2>/dev/null)" in *'Candidate: '[0-9]*) ;; *) apt-get update -q >&2;; esac
  APT_READY=1
}
need() { command -v "$1" >/dev/null || { apt_ready; apt-get install -yq --no-install-recommends "$2" >&2; }; }
fetch() {       # fetch PKG:ARCH...: download packages into the cache; stale package lists are renewed
  apt_ready
  (cd "$CACHE/deb" && { apt-get download -qq -o APT::Sandbox::User=root "$@" ||
    { apt-get update -q && apt-get download -qq -o APT::Sandbox::User=root "$@"; }; }) >&2
}
known() {       # known FILE: says where it is another version than the one that the bench was tested with
  local name; name=$(basename "$1")
  grep -q " ${name%%_*}_" "$HERE/packages.sha256" || return 0
  grep -q "^$(sha256sum < "$1" | cut -c1-64) " "$HERE/packages.sha256" ||
    echo "guest.sh: $name is not the package that this was tested with" >&2
}
unpack() {      # unpack DIR PKG:ARCH...
  local dir=$1 p n a newest file; shift; mkdir -p "$dir"
  for p in "$@"; do n=${p%:*} a=${p##*:} newest=
    for file in "$CACHE/deb/${n}"_*_"$a".deb "$CACHE/deb/${n}"_*_all.deb; do
      [ ! -f "$file" ] || [ "$newest" -nt "$file" ] || newest=$file; done
    [ -n "$newest" ] || { echo "guest.sh: $p was not downloaded into $CACHE/deb" >&2; return 77; }
    known "$newest"; dpkg -x "$newest" "$dir"; done
}
get() { local dir=$1; shift; set -- "${@/%/:$DARCH}"; fetch "$@"; unpack "$dir" "$@"; }
pack() { (cd "$1" && find . -mindepth 1 | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0); }

need $QEMU $QPKG; need cpio cpio

KDIR=$AC/kernel-$FLAV
if ! ls "$KDIR"/boot/vmlinuz-* >/dev/null 2>&1; then
  apt_ready
  meta=linux-image-$DARCH; [ "$FLAV" = generic ] || meta=linux-image-$FLAV-$DARCH
  img=$(apt-cache depends "$meta:$DARCH" | awk '/Depends:/{sub(/:[a-z0-9]*$/,"",$2); print $2; exit}')
  get "$KDIR" "$img"
fi
KERNEL=$(ls "$KDIR"/boot/vmlinuz-* | tail -1)
REL=$(basename "$KERNEL"); REL=${REL#vmlinuz-}              # e.g. 6.1.0-56-cloud-amd64

headers() {     # kernel headers of $REL, unpacked under $H
  H=$AC/headers-$REL
  local abi; abi=$(echo "$REL" | sed -E 's/^([0-9.]+-[0-9]+).*/\1/')
  [ ! -f "$H/.done" ] || return 0
  local p=("linux-headers-$REL:$DARCH" "linux-headers-$abi-common:all" "linux-kbuild-${abi%.*}:amd64")
  fetch "${p[0]}" "${p[1]%:all}" "${p[2]}"; unpack "$H" "${p[@]}"
  sed -i "s,/usr/src/,$H/usr/src/,g" "$H/usr/src/linux-headers-$REL/Makefile"
  # objects of the tree that point outside it (scripts, tools) are links to /usr/lib/linux-kbuild-*
  find "$H/usr/src" -type l | while read -r l; do t=$(readlink "$l")
    case $t in /usr/*) ln -sfn "$H$t" "$l";; esac; done
  touch "$H/.done"
}
modules() {     # build simpmu.ko, simhw.ko, simpower.ko for $REL; once per state of the sources
  local sum; sum=$(cat "$HERE"/sim*.c "$HERE/Makefile" | sha256sum | cut -c1-12)
  MDIR=$AC/modules-$REL-$sum
  [ ! -f "$MDIR/simpmu.ko" ] || return 0
  need $HCC $HCCPKG; need make make; headers
  local b=$AC/build.$$; rm -rf "$b"; find "$AC" -maxdepth 1 -name "modules-$REL-*" -mtime +7 -exec rm -rf {} +; mkdir -p "$b"; cp "$HERE"/sim*.c "$HERE/Makefile" "$b/"
  if ! make -C "$H/usr/src/linux-headers-$REL" M="$b" ARCH=$KARCH CROSS_COMPILE=$CROSS CC=$HCC modules > "$b/log" 2>&1; then
    cat "$b/log" >&2; rm -rf "$b"; echo "guest.sh: the modules do not build" >&2; exit 2; fi
  grep -i 'warning:' "$b/log" | grep -v -e BTF -e 'compiler differs' >&2 || true
  mkdir -p "$MDIR"; cp "$b"/*.ko "$MDIR/"; rm -rf "$b"
}

if [ ! -f "$AC/base.cpio" ] || [ "$HERE/guest.sh" -nt "$AC/base.cpio" ]; then
  b=$AC/base; rm -rf "$b"; mkdir -p "$b"/{usr/bin,usr/lib,usr/lib64,usr/sbin,dev,proc,sys,tmp,work,root,etc,run}
  for l in bin lib lib64 sbin; do ln -s usr/$l "$b/$l"; done
  [ -f "$AC/busybox/bin/busybox" ] || get "$AC/busybox" busybox-static
  cp "$AC/busybox/bin/busybox" "$b/bin/busybox"
  for a in sh mount mkdir cat ls dmesg grep head tail sleep poweroff insmod base64 sed awk ln cp id nproc \
           uname time wc seq kill ps env taskset chmod od find true false test date free mknod rm stat sort sync uniq tr cut du df touch xargs yes tee dd nice nohup timeout which pidof top rmmod lsmod su setpriv chown adduser usleep printf expr; do
    ln -s busybox "$b/bin/$a"; done
  printf 'root:x:0:0:root:/root:/bin/sh\ntester:x:1000:1000::/tmp:/bin/sh\n' > "$b/etc/passwd"
  printf 'root:x:0:\ntester:x:1000:\n' > "$b/etc/group"
  cat > "$b/init" <<'EOI'
#!/bin/sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root TERM=dumb
mount -t devtmpfs dev /dev; mount -t proc proc /proc; mount -t sysfs sys /sys
mkdir -p /sys/kernel/debug /dev/shm; mount -t tracefs t /sys/kernel/tracing 2>/dev/null
mount -t tmpfs tmp /tmp; mount -t tmpfs shm /dev/shm
. /guest/.env
echo "$PARANOID" > /proc/sys/kernel/perf_event_paranoid
echo 0 > /proc/sys/kernel/kptr_restrict
bad=
[ ! -f /guest/.mods/list ] || while read -r m; do e=$(insmod /guest/.mods/$m 2>&1) || bad="$bad insmod $m: $e;"; done < /guest/.mods/list
cd /guest; read up _ < /proc/uptime
echo "@@GUEST-START $up"
if [ -n "$bad" ]; then echo "$bad"; rc=125; echo; echo "@@GUEST-EXIT $rc"; sync; poweroff -f; fi
if [ "$GUSER" = root ]; then sh /guest/.cmd < /dev/null
else chmod 1777 /guest; su "$GUSER" -s /bin/sh -c 'cd /guest; exec sh /guest/.cmd' < /dev/null; fi; rc=$?
echo; echo "@@GUEST-EXIT $rc"
for f in $BRING; do [ -f "$f" ] && { echo "@@FILE $f"; base64 "$f"; echo "@@END"; }; done
sync; poweroff -f
EOI
  chmod +x "$b/init"; pack "$b" > "$AC/base.cpio.new"; mv "$AC/base.cpio.new" "$AC/base.cpio"
fi

if [ $PERF = 1 ] && [ ! -f "$AC/perf.cpio" ]; then
  get "$AC/perf-all" linux-perf libbabeltrace1 libc6 libcap2 libdw1 libelf1 liblzma5 libnuma1 \
    libopencsd1 libperl5.36 libpython3.11 libslang2 libunwind8 libzstd1 zlib1g libgcc-s1 libstdc++6 \
    libbz2-1.0 libcrypt1 libexpat1 libglib2.0-0 libuuid1 libpcre2-8-0
  python3 - "$AC/perf-all" "$AC/perf" <<'EOP'
# /opt/perf holds perf with its own loader and libraries; /usr/bin/perf is a wrapper
import os, re, shutil, subprocess, sys
src, dst = sys.argv[1:]
where = {}
for d, _, fs in os.walk(src):
    for f in fs:
        if '.so' in f: where.setdefault(f, os.path.join(d, f))
def needed(p):
    return re.findall(r'NEEDED.*\[(.*?)\]', subprocess.run(['readelf', '-d', p], capture_output=True, text=True).stdout)
shutil.rmtree(dst, ignore_errors=True); os.makedirs(dst + '/usr/bin'); os.makedirs(dst + '/opt/perf/lib')
shutil.copy(src + '/usr/bin/perf', dst + '/opt/perf/perf')
todo, seen, ld = needed(src + '/usr/bin/perf'), set(), None
while todo:
    n = todo.pop()
    if n in seen: continue
    seen.add(n)
    if n not in where: print('missing', n, file=sys.stderr); continue
    shutil.copy(os.path.realpath(where[n]), f'{dst}/opt/perf/lib/{n}')
    if n.startswith('ld-linux'): ld = n
    todo += needed(where[n])
with open(dst + '/usr/bin/perf', 'w') as f:
    f.write(f'#!/bin/sh\nexec /opt/perf/lib/{ld} --library-path /opt/perf/lib /opt/perf/perf "$@"\n')
os.chmod(dst + '/usr/bin/perf', 0o755)
EOP
  pack "$AC/perf" > "$AC/perf.cpio.new"; mv "$AC/perf.cpio.new" "$AC/perf.cpio"
fi

T=$(mktemp -d); trap 'rm -rf "$T"' EXIT
w=$T/u/guest; mkdir -p "$w/.mods"
printf '%s\n' "$*" > "$w/.cmd"
printf 'PARANOID=%s\nBRING="%s"\nGUSER=%s\n' "$PARANOID" "${BRING[*]-}" "$GUSER" > "$w/.env"
libs() {        # libs FILE: the shared libraries and the loader of a dynamic native program, into the guest
  local l r
  [ "$(head -c 4 "$1" | tail -c 3)" = ELF ] && readelf -l "$1" 2>/dev/null | grep -q 'interpreter: ' || return 0
  ldd "$1" 2>/dev/null | awk '$2=="=>" && $3 ~ /^\//{print $3} $1 ~ /^\//{print $1}' | while read -r l; do
    r=$l; case $l in /lib/*|/lib64/*) r=/usr$l;; esac
    mkdir -p "$T/u$(dirname "$r")"; cp -L "$l" "$T/u$r"; done
}
for f in ${FILES[@]+"${FILES[@]}"}; do s=${f%%:*}; n=${f#"$s"}; n=${n#:}; cp "$s" "$w/${n:-$(basename "$s")}"; libs "$s"; done
if [ $PHASES = 1 ]; then
  need $HCC $HCCPKG
  ph=$AC/phases-$(sha256sum "$HERE/phases.c" | cut -c1-12)
  [ -f "$ph" ] || { rm -f "$AC"/phases-*; $HCC -O1 -g -static -fno-omit-frame-pointer -pthread -o "$ph" "$HERE/phases.c"; }
  cp "$ph" "$w/phases"; fi
for m in ${MODS[@]+"${MODS[@]}"}; do f=${m%% *} par=${m#"${m%% *}"}
  case $f in simpmu|simhw|simpower|simpmu.ko|simhw.ko|simpower.ko) modules; f=$MDIR/${f%.ko}.ko;; esac
  cp "$f" "$w/.mods/"; echo "$(basename "$f")$par" >> "$w/.mods/list"; done
for d in ${DIRS[@]+"${DIRS[@]}"}; do cp -a "$d/." "$T/u/"; done
parts=("$AC/base.cpio"); [ $PERF = 0 ] || parts+=("$AC/perf.cpio")
{ cat "${parts[@]}"; pack "$T/u"; } > "$T/initrd"
exec 9>&-
[ $BUILD = 0 ] || { echo "guest.sh: ready: $REL${MDIR:+, modules in $MDIR}"; exit 0; }

loglevel=$([ $VERB = 1 ] && echo 7 || echo 3)
if [ $ARCH = x86_64 ]; then
  args=(-M q35 -accel tcg -append "console=ttyS0 panic=-1 loglevel=$loglevel nokaslr mitigations=off edd=off tsc=reliable clocksource=tsc nowatchdog")
else
  args=(-M virt,gic-version=3 -append "console=ttyAMA0 panic=-1 loglevel=$loglevel nokaslr")
fi
args+=(-cpu "$CPU" -smp "$SMP" -m "$MEM" -nodefaults -no-reboot -nographic -serial stdio -monitor none
       -kernel "$KERNEL" -initrd "$T/initrd")
[ -z "$ICOUNT" ] || args+=(-icount "$ICOUNT")
t0=$(date +%s.%N)
set +e; trap - ERR
timeout -k 5 "$TMO" $QEMU "${args[@]}" < /dev/null 2>"$T/qemu.err" | tr -d '\r' | tee "$T/log" |
  { if [ $VERB = 1 ]; then cat; else awk '/^@@GUEST-EXIT/{exit} p{print; fflush()} /@@GUEST-START/{p=1}'; cat >/dev/null; fi; }
q=${PIPESTATUS[0]}
set -e
trap "$on_error" ERR
t1=$(date +%s.%N)
for f in ${BRING[@]+"${BRING[@]}"}; do
  awk -v f="$f" '$0=="@@END"{p=0} p{print} $0=="@@FILE " f{p=1}' "$T/log" | base64 -d > "$(basename "$f")"; done
rc=$(awk '/^@@GUEST-EXIT/{print $2}' "$T/log" | tail -1)
up=$(awk '/@@GUEST-START/{print $NF}' "$T/log" | tail -1)
[ $QUIET = 1 ] || awk -v a="$t0" -v b="$t1" -v u="${up:-none}" 'BEGIN{printf "guest.sh: %.1f s wall; guest uptime at start %s s\n", b-a, u}' >&2
if [ -z "$rc" ]; then echo "guest.sh: no exit status from the guest (qemu status $q)" >&2
  cat "$T/qemu.err" >&2; tail -20 "$T/log" >&2; exit 125; fi
exit "$rc"
