#!/bin/sh
# Makes a virtual environment that sees the packages of another one and holds only what it wants in other versions.
# Usage: install-over.sh BIN DIRECTORY REQUIREMENTS ...
set -eu
bin=$1
directory=$2
shift 2
echo "Installing $* into $directory ..."
"$bin/python" -m venv "$directory"
packages='import sysconfig; print(sysconfig.get_path("purelib"))'
"$bin/python" -c "$packages" > "$("$directory/bin/python" -c "$packages")/over.pth"
"$directory/bin/python" -m pip install --quiet "$@"
