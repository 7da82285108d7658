#!/bin/sh
# Runs last. The byte code of Python's library stays, because it makes every start faster; its own
# tests go.
set -eu
rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/var/cache/debconf/* "$1"/var/log/* "$1"/tmp/* "$1"/var/tmp/*
rm -rf "$1"/var/lib/dpkg/*-old "$1"/var/backups/* "$1"/etc/*-
rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap "$1"/etc/dpkg/dpkg.cfg.d/99mmdebstrap
find "$1"/usr/lib/python3* -type d -name test -prune -exec rm -rf '{}' + 2>/dev/null || true
