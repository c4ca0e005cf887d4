#!/usr/bin/env bash
# Runs tests, and repeats failures at the end of the output.
# --groups 'PATTERN ...' runs the tests that match each pattern, and then all others, in two processes at a time. The
# longest group should be the first; no test should match two patterns.
# usage: test.sh [--groups 'PATTERN ...'] SWIFT [OPTION OF swift test ...]   after swift build --build-tests
set -uo pipefail

patterns=()
if [ "$1" = --groups ]; then
  read -ra patterns <<<"$2"
  shift 2
fi
swift=$1
shift

logs=$(mktemp -d)
# The logs of running processes, by process.
running=()
trap 'rm -rf "$logs"' EXIT
# Background processes ignore interrupts, and `swift test` ends without its child.
trap 'for tests in "${!running[@]}"; do kill "$tests" $(cat "/proc/$tests/task/$tests/children"); done 2>/dev/null; exit 130' INT TERM

status=0
# Waits for a process to end.
finish() {
  local ended
  wait -n -p ended "${!running[@]}" || status=$?
  # A program that ends before its summary has not run all tests.
  grep -qaE '^. Test run with [1-9]' "${running[ended]}" || status=1
  [ "${#patterns[@]}" -eq 0 ] || cat "${running[ended]}"
  unset "running[ended]"
}

if [ "${#patterns[@]}" -eq 0 ]; then
  "$swift" test --skip-build --no-parallel "$@" >"$logs/log" 2>&1 &
  running[$!]=$logs/log
  # Not a pipe, because a process left behind by a failed test would keep it open.
  tail -n +1 -f --pid="$!" --retry "$logs/log" 2>/dev/null
else
  # The test bundle itself, because two `swift test` commands wait for each other.
  bundle=$("$swift" build --show-bin-path)/night-auditPackageTests.xctest
  for pattern in "${patterns[@]}" ''; do
    while [ "${#running[@]}" -ge 2 ]; do finish; done
    group=(--filter "$pattern")
    [ -n "$pattern" ] || group=(--skip "$(IFS='|' && echo "${patterns[*]}")")
    "$bundle" --testing-library swift-testing --no-parallel "${group[@]}" "$@" >"$logs/${pattern:-others}" 2>&1 &
    running[$!]=$logs/${pattern:-others}
  done
fi
while [ "${#running[@]}" -gt 0 ]; do finish; done

if [ "$status" -ne 0 ]; then
  echo
  echo 'What failed:'
  # The lines of swift test with failed expectations, then the summary.
  grep -ahE '^(✘|↳)|: error: |Fatal error|unexpected signal' "$logs"/* |
    grep -avE '^✘ Test run|^↳ (Testing Library|Target Platform)' | cut -c 1-300 | tail -n 14
  grep -ahE '^. Test run with' "$logs"/*
fi
exit "$status"
