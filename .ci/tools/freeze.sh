#!/bin/sh
# Rewrites constraints.txt from what .venv holds, which is to be all extras (node too); local versions such as +cpu are not part of a pin.
set -eu
{
    echo "# Every distribution that pip installs for Palestra, made by .ci/tools/freeze.sh; torch brings its CUDA packages at versions of its own."
    .venv/bin/python -m pip freeze --all --exclude-editable --exclude palestra 2> /dev/null | grep -Ev '^(#|-e|nvidia-|triton)' | sed 's/+[A-Za-z0-9.]*$//' | LC_ALL=C sort -f
} > constraints.txt.new
mv constraints.txt.new constraints.txt
