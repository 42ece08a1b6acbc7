#!/bin/sh
# Runs every test: pytest in four processes, then what starts real processes and browsers in five, since those wait more, then the
# dashboard's. Both halves at a time take longer: each fills two cores.
# Usage: test.sh BIN [PYTEST ARGUMENTS ...]
set -u
bin=$1
shift
reports=$(mktemp -d) || exit 1
trap 'rm -rf "$reports"' EXIT
# Every process that a test starts would compile Palestra anew.
unset PYTHONDONTWRITEBYTECODE
failed=0
"$bin/pytest" -n 4 -m "not slow and not gpu and not processes and not browser" --durations 15 --junitxml "$reports/unit.xml" "$@" || failed=1
"$bin/pytest" -n 5 --dist loadscope --no-loadscope-reorder -m "(processes or browser) and not slow and not gpu" --durations 15 --junitxml "$reports/processes.xml" "$@" || failed=1
.ci/tools/with-node.sh npm --prefix frontend run --silent test -- --reporter=default --reporter=junit --outputFile.junit="$reports/frontend.xml" || failed=1
"$bin/python" .ci/tools/total.py "$reports" || failed=1
exit $failed
