#!/bin/sh
# The user that sandboxes run as, and its directory.
set -eu
chroot "$1" useradd --create-home --uid 1000 --user-group --shell /bin/bash agent
if [ -d "$1/etc/sudoers.d" ]; then
    printf 'agent ALL=(ALL:ALL) NOPASSWD:ALL\n' > "$1/etc/sudoers.d/agent"
    chmod 0440 "$1/etc/sudoers.d/agent"
fi
mkdir -p "$1/workspace"
chown 1000:1000 "$1/workspace"
