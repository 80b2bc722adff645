#!/bin/sh
# Makes the seeds of the target `symbols` whose debug information lies in several files: each is all of
# these files at once. Needs gcc, binutils and dwp; run it in any folder.
#
#   split    the program, and its own .dwo file
#   package  the program, and its own .dwp package
#   linked   the program, and what its debug information shares with that of others (dwz)
#   stripped the program without debug information, which names its debug file by build-id and by name
#   expressions  a program whose unwind tables compute where a function's frame is: from the stack pointer, from what lies
#                in the stack (as a crypto library's assembly does), from the instruction (as a linker's stubs do)
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

# Operations of DWARF behind `def_cfa_expression` (0x0f) and their length; long functions, so that the target asks in them.
cat >expressions.s <<'END'
.text
.macro function name, expression:vararg
.globl \name
\name:
.cfi_startproc
.skip 128, 0x90
.cfi_escape 0x0f, \expression
.skip 512, 0x90
.cfi_def_cfa 6, 16
.skip 128, 0x90
call 1f
1: ret
.cfi_endproc
.endm
function _start, 2, 0x77, 24
function of_stack, 5, 0x77, 8, 0x06, 0x23, 8
function of_instruction, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
END
gcc -c expressions.s -o expressions.o
gcc -nostdlib -static -Wl,--eh-frame-hdr,--build-id=none,-n,-z,noseparate-code expressions.o -o binary
strip binary
seed expressions
