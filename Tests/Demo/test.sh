#!/usr/bin/env bash
# Runs tests and, when some fail, says again at the end which and why: the last lines are what people and machines read.
# usage: test.sh COMMAND [ARG ...]
set -uo pipefail

log=$(mktemp)
"$@" >"$log" 2>&1 &
tests=$!
trap 'rm -f "$log"' EXIT
trap 'kill "$tests" 2>/dev/null; exit 130' INT TERM
# Not a pipe: a program that a failed test has left behind would keep it open.
tail -n +1 -f --pid="$tests" "$log"
wait "$tests"
status=$?
if [ "$status" -ne 0 ]; then
  echo
  echo 'What failed:'
  # swift test's own lines: a failed expectation with what it found, then the sum.
  grep -aE '^(✘|↳)|: error: |Fatal error|unexpected signal' "$log" | grep -av '^✘ Test run' | cut -c 1-300 | tail -n 14
  grep -aE '^. Test run with' "$log" | tail -n 1
fi
exit "$status"
