#!/bin/sh
# Runs tests: pytest in two processes, then what starts real processes and browsers in two more, then the dashboard's. More
# processes, and both halves at a time, take longer: each half fills two cores. With REPORTS set, the reports stay in that
# directory.
# Usage: test.sh BIN MARKS [PYTEST ARGUMENTS ...]
set -u
bin=$1
marks=$2
shift 2
if [ -n "${REPORTS:-}" ]; then
    rm -rf "$REPORTS" && mkdir -p "$REPORTS" || exit 1
    reports=$(cd "$REPORTS" && pwd)
else
    reports=$(mktemp -d) || exit 1
    trap 'rm -rf "$reports"' EXIT
fi
# Every process that a test starts would compile Palestra anew.
unset PYTHONDONTWRITEBYTECODE
failed=0
begun=$(date +%s)
measure() {
    "$bin/python" .ci/tools/additions.py >> "$reports/additions"
}
run_half() {
    name=$1
    half=$2
    shift 2
    measure
    # Module by module: the tests of a module share a server or a database, which every process would make for itself.
    # The order is that of tests/support/scheduling.py.
    "$bin/pytest" -n 2 --dist loadscope --no-loadscope-reorder -m "($half) and ($marks)" --junitxml "$reports/$name.xml" --durations-json "$reports/$name.json" "$@" || failed=1
}
run_half unit "not processes and not browser" --ignore tests/e2e "$@"
# Without arguments only the modules of this half are imported: all of them would take each process 15 s.
[ $# != 0 ] || set -- $(grep -rlE "mark\.(processes|browser)\>" tests --include "test_*.py")
run_half processes "processes or browser" "$@"
measure
.ci/tools/with-node.sh npm --prefix frontend run --silent test -- --reporter=default --reporter=junit --outputFile.junit="$reports/frontend.xml" || failed=1
measure
"$bin/python" .ci/tools/total.py "$reports" $(($(date +%s) - begun)) || failed=1
exit $failed
