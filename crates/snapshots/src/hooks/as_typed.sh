#!/bin/sh
# Lets commands work as people type them, for what of them the image has.
set -eu
# The whole machine is the user's to break; the warning would only stop `pip install`.
rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED
if [ -e "$1/usr/bin/pytest-3" ] && [ ! -e "$1/usr/local/bin/pytest" ]; then
    ln -s /usr/bin/pytest-3 "$1/usr/local/bin/pytest"
fi
# Files come in through the API, a volume or root; to git they all are this one user's.
if [ -e "$1/usr/bin/git" ]; then
    printf '[safe]\n\tdirectory = *\n' >> "$1/etc/gitconfig"
fi
