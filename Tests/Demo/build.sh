#!/usr/bin/env bash
# Runs a build, and shows its progress as one line on a terminal. Shows the whole output of a failed build.
# usage: build.sh COMMAND [ARG ...]
set -uo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
began=$SECONDS
"$@" >"$log" 2>&1 &
build=$!
trap 'kill "$build" 2>/dev/null; exit 130' INT TERM
if [ -t 1 ]; then
  while kill -0 "$build" 2>/dev/null; do
    printf '\r\033[KBuilding: %s (%d s)' "$(grep -oE '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 1)" $((SECONDS - began))
    sleep 1
  done
  printf '\r\033[K'
fi
wait "$build"
status=$?
if [ "$status" -ne 0 ]; then
  cat "$log" >&2
  exit "$status"
fi
echo "Built in $((SECONDS - began)) s."
