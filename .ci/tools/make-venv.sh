#!/bin/sh
# Makes a virtual environment with the newest Python >= 3.11 that is found. Usage: make-venv.sh DIRECTORY
set -eu
for python in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python3; do
    if command -v "$python" > /dev/null 2>&1 && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
        echo "Making $1 with $("$python" --version) ..."
        "$python" -m venv "$1" || {
            rm -rf "$1"
            echo "This Python has no venv module. On Debian and Ubuntu: apt-get install python3-venv" >&2
            exit 1
        }
        exit 0
    fi
done
echo "Palestra needs Python 3.11 or newer: install it, or name it with PYTHON=/path/to/python make ..." >&2
exit 1
