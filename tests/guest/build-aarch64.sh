#!/usr/bin/env bash
# Builds eprof for aarch64 on a Debian machine, and prints the program's path. Where rustup can add the target to the
# machine's own Rust toolchain, that builds it, in three minutes on two cores. Where it cannot, Debian's rustc-web and its
# standard libraries are unpacked into a folder of the guest's cache, and cargo is the machine's own: the first time takes
# 1.2 GB of disk and a quarter of an hour. With `--own-toolchain` that is not tried. Later runs build what has changed.
set -euo pipefail
target=aarch64-unknown-linux-gnu
project=$(cd "$(dirname "$0")/../.." && pwd)
cache=${EPROF_GUEST_CACHE:-$HOME/.cache/eprof-guest}/aarch64-rust
root=$cache/root
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9

own_toolchain() {
    command -v rustup >/dev/null && rustup target add "$target"
}

# Package lists without the one for aarch64 are those of before the architecture was added.
lists() {
    dpkg --print-foreign-architectures | grep -qx arm64 || dpkg --add-architecture arm64
    apt-cache policy libstd-rust-web-dev:arm64 | grep -q 'Candidate: [0-9]' || apt-get update -qq
}

install_missing() {
    local missing=()
    command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
    command -v qemu-system-aarch64 >/dev/null || missing+=(qemu-system-arm)
    [ ${#missing[@]} = 0 ] ||
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# All that a package needs, but for what every Debian machine has.
with_libraries() {
    apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
        --no-enhances "$1" | grep -E '^[a-z]' | grep -vE ':|^(libc6|libgcc-s1|libstdc\+\+6|libcrypt1|gcc-.*-base)$'
}

compiler() {
    [ ! -f "$root/.done" ] || return 0
    rm -rf "$root"
    mkdir -p "$root" "$cache/deb"
    local standard
    standard=$(apt-cache depends libstd-rust-web-dev | sed -n 's/ *Depends: //p')
    (
        cd "$cache/deb"
        # shellcheck disable=SC2046
        apt-get download -qq -o APT::Sandbox::User=root rustc-web libstd-rust-web-dev:amd64 \
            libstd-rust-web-dev:arm64 $(with_libraries "$standard")
        for package in *.deb; do dpkg -x "$package" "$root"; done
    )
    rm -rf "$cache/deb"
    cat >"$root/rustc" <<EOF
#!/bin/sh
LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu exec $root/usr/bin/rustc "\$@"
EOF
    chmod +x "$root/rustc"
    "$root/rustc" --version
    touch "$root/.done"
}

{
    cd "$project"
    if own_toolchain; then
        install_missing
        # The compiler is quick and the guest slow, but the test waits for neither.
        optimised=0 built=own
    elif [ "${1-}" = --own-toolchain ]; then
        echo "this machine's Rust toolchain has no $target, and rustup cannot add it"
        exit 1
    else
        lists
        install_missing
        compiler
        # Debian's compiler is half as fast as the usual one, and the guest too slow for no optimisation at all.
        export RUSTC=$root/rustc
        optimised=1 built=debian
    fi
    export CARGO_TARGET_DIR=$cache/target-$built CARGO_INCREMENTAL=0
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS='-C target-feature=+crt-static'
    cargo build --locked --quiet --target "$target" --package eprof --bin eprof \
        --config 'profile.dev.debug=false' --config "profile.dev.package.\"*\".opt-level=$optimised"
} >&2
program=$cache/target-$built/$target/debug/eprof
aarch64-linux-gnu-strip -o "$program.stripped" "$program"
echo "$program.stripped"
