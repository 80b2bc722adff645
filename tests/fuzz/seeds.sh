#!/bin/sh
# Makes the seeds of the target `symbols` whose debug information lies in several files: each is all of
# these files at once. Needs gcc, binutils and dwp; run it in any folder.
#
#   split    the program, and its own .dwo file
#   package  the program, and its own .dwp package
#   linked   the program, and what its debug information shares with that of others (dwz)
#   stripped the program without debug information, which names its debug file by build-id and by name
set -eu
seeds=$(cd "$(dirname "$0")" && pwd)/seeds/symbols
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cd "$folder"
cat >program.c <<'END'
static inline __attribute__((always_inline)) int inner(int x) { return x * x + 3; }
__attribute__((noinline)) int outer(int x) { return inner(x) + inner(x + 1); }
void _start(void) { outer(7); __builtin_trap(); }
END
# The target takes paths as relative to its folder, and has a debug file of this build-id.
compile() {
    gcc -c -O2 -fno-asynchronous-unwind-tables -ffile-prefix-map="$folder"=. "$@" program.c -o binary.o
    gcc -nostdlib -static -Wl,--build-id=0xabcd,-n,-z,noseparate-code binary.o -o binary
}
# Adds the sections of $1 that a program has none of.
add_sections() {
    test -e "$1"
    readelf -SW "$1" | grep -o '\.debug_[a-z_]*\(\.dwo\)\?' | sort -u | while read -r section; do
        case $section in
        *.dwo | .debug_cu_index)
            objcopy -O binary --set-section-flags "$section=alloc" -j "$section" "$1" part
            objcopy --add-section "$section=part" binary
            ;;
        esac
    done
}
seed() {
    { printf '\0'; cat binary; } >"$seeds/$1"
}

compile -gdwarf-5 -gsplit-dwarf
add_sections binary.dwo
seed split

compile -gdwarf-4 -gsplit-dwarf
dwp -e binary -o binary.dwp
add_sections binary.dwp
seed package

compile -gdwarf-4
printf 'binary.dwp\0\253\315' >part
objcopy --add-section .gnu_debugaltlink=part binary
seed linked

strip --strip-debug binary
objcopy --remove-section .gnu_debugaltlink binary
printf 'binary.dwp\0\0\0\0\0\0' >part
objcopy --add-section .gnu_debuglink=part binary
seed stripped
