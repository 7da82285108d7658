#!/usr/bin/env bash
# Builds the seven programs and the engine's memory library into target/dist, where they find each
# other.
#
# The guest agent is apart: it is linked statically, because it runs as PID 1 of guests that have
# no C library yet, and for size, because its pages are restore latency.
set -euo pipefail
cd "$(dirname "$0")"
target=${CARGO_TARGET_DIR:-target}
triple=x86_64-unknown-linux-gnu

# Beside the others: its last step keeps one processor busy for a minute.
(
    export RUSTFLAGS="-C target-feature=+crt-static"
    cargo build --locked --profile guest --target "$triple" -p dayfly-guest
) &
guest=$!
trap 'kill "$guest" 2>/dev/null || true' EXIT
cargo build --locked --release -p dayfly -p dayflyd -p dayfly-bench -p dayfly-jail \
    -p dayfly-egress-process -p dayfly-image -p dayfly-memory
wait "$guest"
trap - EXIT

mkdir -p target/dist
install -m 0755 "$target/release/dayfly" "$target/release/dayflyd" "$target/release/dayfly-bench" \
    "$target/release/dayfly-jail" "$target/release/dayfly-egress" \
    "$target/release/dayfly-image" \
    "$target/$triple/guest/dayfly-guest" target/dist/
install -m 0644 "$target/release/libdayfly_memory.so" target/dist/
echo "built: target/dist/dayfly, dayflyd, dayfly-bench, dayfly-jail, dayfly-egress, dayfly-image, dayfly-guest, libdayfly_memory.so" >&2
