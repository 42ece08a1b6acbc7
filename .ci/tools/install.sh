#!/bin/sh
# Installs Palestra and what it needs into a virtual environment, all at the pinned versions. Usage: install.sh BIN EXTRAS
set -eu
echo "Installing Palestra [$2] (torch is large: the first time takes a while) ..."
"$1/python" -m pip install --quiet --constraint constraints.txt hatchling editables setuptools
"$1/python" -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[$2]"
