#!/usr/bin/env bash
# Runs tests, and repeats failures at the end of the output.
# --beside PATTERN runs matching tests in a second process.
# usage: test.sh [--beside PATTERN] SWIFT [OPTION OF swift test ...]   after swift build --build-tests
set -uo pipefail

pattern=
if [ "$1" = --beside ]; then
  pattern=$2
  shift 2
fi
swift=$1
shift

logs=$(mktemp -d)
shown=("$logs/log")
running=()
trap 'rm -rf "$logs"' EXIT
# Background processes ignore interrupts, and `swift test` ends without its child.
trap 'for tests in "${running[@]}"; do kill "$tests" $(cat "/proc/$tests/task/$tests/children"); done 2>/dev/null; exit 130' INT TERM
if [ -n "$pattern" ]; then
  # The test bundle itself, because two `swift test` commands wait for each other.
  bundle=$("$swift" build --show-bin-path)/night-auditPackageTests.xctest
  "$bundle" --testing-library swift-testing --no-parallel --skip "$pattern" "$@" >"$logs/others" 2>&1 &
  running+=($!)
  shown=("$logs/others" "${shown[@]}")
  set -- --filter "$pattern" "$@"
fi
"$swift" test --skip-build --no-parallel "$@" >"$logs/log" 2>&1 &
running+=($!)

status=0
for number in "${!running[@]}"; do
  tests=${running[number]}
  log=${shown[number]}
  until [ -e "$log" ]; do sleep 0.1; done
  # Not a pipe, because a process left behind by a failed test would keep it open.
  tail -n +1 -f --pid="$tests" "$log"
  wait "$tests" || status=$?
  # A program that ends before its summary has not run all tests.
  grep -qaE '^. Test run with [1-9]' "$log" || status=1
done
if [ "$status" -ne 0 ]; then
  echo
  echo 'What failed:'
  # The lines of swift test with failed expectations, then the summary.
  grep -ahE '^(✘|↳)|: error: |Fatal error|unexpected signal' "${shown[@]}" |
    grep -avE '^✘ Test run|^↳ (Testing Library|Target Platform)' | cut -c 1-300 | tail -n 14
  grep -ahE '^. Test run with' "${shown[@]}"
fi
exit "$status"
