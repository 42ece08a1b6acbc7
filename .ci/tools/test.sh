#!/bin/sh
# Runs every test. What starts real processes and browsers waits for most of its time; the other tests of Python take what it leaves of the
# processors, and give way to it. Then the dashboard's.
# Usage: test.sh BIN [PYTEST ARGUMENTS ...]
set -u
bin=$1
shift
reports=$(mktemp -d) || exit 1
unit=""
trap '[ -z "$unit" ] || kill "$unit" 2> /dev/null; rm -rf "$reports"' EXIT
trap 'exit 130' INT TERM
# Every process that a test starts would compile Palestra anew.
unset PYTHONDONTWRITEBYTECODE
failed=0
nice -n 10 "$bin/pytest" -n 3 -m "not slow and not gpu and not processes and not browser" --junitxml "$reports/unit.xml" "$@" > "$reports/unit.log" 2>&1 &
unit=$!
"$bin/pytest" -n 5 --dist loadscope --no-loadscope-reorder -m "(processes or browser) and not slow and not gpu" --junitxml "$reports/processes.xml" "$@" || failed=1
.ci/tools/with-node.sh npm --prefix frontend run --silent test -- --reporter=default --reporter=junit --outputFile.junit="$reports/frontend.xml" || failed=1
wait "$unit" || failed=1
unit=""
cat "$reports/unit.log"
"$bin/python" .ci/tools/total.py "$reports" || failed=1
exit $failed
