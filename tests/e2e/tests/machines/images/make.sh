#!/bin/bash
# Makes images in an OCI layout, with umoci, from trees that are made here.
#   make.sh DIRECTORY LISTER TAG...
# Tags: busybox, user (a user, a directory, variables and a server as entry point), static (one
# program and nothing else), layers (30 of them, with whiteouts), musl, debian, twin-one and twin-two
# (the same large layer below, and one more each).
set -euo pipefail
work=$1 lister=$2
shift 2
layout=$work/layout
[ -d "$layout" ] || umoci init --layout "$layout"

busybox_tree() {
    mkdir -p "$1/bin" "$1/etc" "$1/tmp" "$1/root"
    chmod 1777 "$1/tmp"
    cp "$(command -v busybox)" "$1/bin/busybox"
    for name in sh ls cat id env true sleep httpd wget stat; do
        ln -s busybox "$1/bin/$name"
    done
    printf 'root:x:0:0::/root:/bin/sh\napp:x:77:78::/app:/bin/sh\n' > "$1/etc/passwd"
    printf 'root:x:0:\napp:x:78:\n' > "$1/etc/group"
}

# add TAG TREE: one more layer, with all that the tree has.
add() {
    tar --xattrs --xattrs-include='*' --numeric-owner -C "$2" -cf "$work/layer.tar" .
    umoci raw add-layer --image "$layout:$1" "$work/layer.tar"
    rm -rf "$work/layer.tar" "$2"
}

config() { umoci config --image "$layout:$1" "${@:2}"; }

make_busybox() {
    busybox_tree "$work/tree"
    add busybox "$work/tree"
    config busybox --config.cmd /bin/sh
}

make_user() {
    busybox_tree "$work/tree"
    mkdir "$work/tree/app"
    echo 'served by the entry point' > "$work/tree/app/index.html"
    chown -R 77:78 "$work/tree/app"
    add user "$work/tree"
    config user --config.user app --config.workingdir /app --config.env 'GREETING=good morning' \
        --config.env PATH=/app/bin:/bin
    config user --config.entrypoint /bin/httpd --config.entrypoint=-f --config.entrypoint=-p \
        --config.entrypoint 8080 --config.entrypoint=-h --config.cmd /app
}

make_static() {
    mkdir "$work/tree"
    cp "$lister" "$work/tree/lister"
    add static "$work/tree"
    config static --config.entrypoint /lister
}

make_layers() {
    local tree=$work/tree number
    busybox_tree "$tree"
    mkdir -p "$tree/data/old/deep" "$tree/data/kept" "$tree/usr/lib" "$tree/many"
    echo old > "$tree/data/old/deep/file"
    echo kept > "$tree/data/kept/file"
    ln "$tree/data/kept/file" "$tree/data/kept/second-name"
    ln -s usr/lib "$tree/lib"
    mkdir "$tree/data/behind"
    echo behind > "$tree/data/behind/file"
    ln -s behind "$tree/data/link"
    mknod "$tree/data/null" c 1 3
    mknod "$tree/data/disk" b 253 70000
    mkfifo "$tree/data/pipe"
    : > "$tree/data/empty"
    truncate -s 3M "$tree/data/hole"
    echo capable > "$tree/data/capable"
    chmod 6755 "$tree/data/capable"
    python3 - "$tree/data/capable" <<'END'
import os, sys
os.setxattr(sys.argv[1], "user.colour", b"green")
os.setxattr(sys.argv[1], "security.capability", bytes.fromhex("0100000200040000" + "00" * 12))
END
    touch -d '1969-07-20 20:17:40 UTC' "$tree/data/early"
    for number in $(seq 400); do echo "$number" > "$tree/many/a-file-with-a-long-name-$number"; done
    add layers "$tree"
    for number in $(seq 2 27); do
        mkdir -p "$tree/steps"
        echo "$number" > "$tree/steps/$number"
        # Each takes away what the last but one has written.
        if [ "$number" -gt 3 ]; then : > "$tree/steps/.wh.$((number - 2))"; fi
        # Over a link of the first layer.
        mkdir -p "$tree/lib"
        echo "$number" > "$tree/lib/library-$number"
        tar --numeric-owner -C "$tree" -cf "$work/layer.tar" --no-recursion \
            $(cd "$tree" && find steps lib -type f)
        umoci raw add-layer --image "$layout:layers" "$work/layer.tar"
        rm -rf "$tree" "$work/layer.tar"
    done
    # A directory where a link was, with a mark that speaks of nothing behind that link.
    mkdir -p "$tree/data/link"
    : > "$tree/data/link/.wh..wh..opq"
    echo directory > "$tree/data/link/file"
    add layers "$tree"
    mkdir -p "$tree/data/old"
    : > "$tree/data/old/.wh..wh..opq"
    echo new > "$tree/data/old/new"
    add layers "$tree"
    mkdir -p "$tree/data" "$tree/many"
    : > "$tree/data/.wh.kept"
    echo 'a file where a directory was' > "$tree/data/kept"
    rmdir "$tree/many"
    : > "$tree/.wh.many"
    add layers "$tree"
    skopeo --insecure-policy copy -q "oci:$layout:layers" "docker-archive:$work/layers.tar:layers:1"
}

make_musl() {
    local tree=$work/tree
    busybox_tree "$tree"
    mkdir -p "$tree/lib" "$tree/usr/bin"
    printf '#include <stdio.h>\nint main(void) { puts("hello from musl"); return 0; }\n' \
        > "$work/hello.c"
    musl-gcc -o "$tree/usr/bin/hello" "$work/hello.c"
    cp -L /lib/ld-musl-x86_64.so.1 "$tree/lib/"
    add musl "$tree"
    config musl --config.cmd /bin/sh
}

make_debian() {
    mmdebstrap --variant=essential --mode=root bookworm "$work/tree" 2> "$work/mmdebstrap.log"
    rm -rf "$work/tree"/dev/* "$work/tree"/proc/* "$work/tree"/sys/*
    add debian "$work/tree"
    config debian --config.cmd bash
}

# The layer of both is one file, as the layer of a base image is.
twin() {
    if [ ! -f "$work/twin.tar" ]; then
        busybox_tree "$work/tree"
        head -c 24M /dev/urandom > "$work/tree/both"
        head -c 4M /dev/urandom > "$work/tree/hidden"
        tar --numeric-owner -C "$work/tree" -cf "$work/twin.tar" .
        rm -rf "$work/tree"
    fi
    cp "$work/twin.tar" "$work/layer.tar"
    umoci raw add-layer --image "$layout:$1" "$work/layer.tar"
    mkdir "$work/tree"
    head -c 300K /dev/urandom > "$work/tree/own"
    echo "$1" > "$work/tree/name"
    : > "$work/tree/.wh.hidden"
    add "$1" "$work/tree"
    config "$1" --config.cmd /bin/sh
}
make_twin-one() { twin twin-one; }
make_twin-two() { twin twin-two; }

for tag in "$@"; do
    umoci new --image "$layout:$tag"
    "make_$tag"
    umoci unpack --image "$layout:$tag" "$work/unpacked-$tag" 2> "$work/umoci.log"
done
