#!/bin/sh
# Installs Palestra and what it needs into a virtual environment, all at the pinned versions. Usage: install.sh BIN EXTRAS
set -eu
echo "Installing Palestra [$2] (torch is large: the first time takes a while) ..."
# The pip that comes with a Python may be old, and take twice the time to choose among the files of an index.
"$1/python" -m pip install --quiet --no-compile --constraint constraints.txt --upgrade pip
"$1/python" -m pip install --quiet --no-compile --constraint constraints.txt hatchling editables setuptools
"$1/python" -m pip install --quiet --no-compile --constraint constraints.txt --no-build-isolation --editable ".[$2]"
# pip would compile every file, one after another. What is used is compiled here, by being imported, also where Python is told to keep nothing:
# each process would compile it anew.
env -u PYTHONDONTWRITEBYTECODE "$1/python" -c "import palestra.cli.main, app.main, workers.host.worker, workers.trainer_process.attempt"
