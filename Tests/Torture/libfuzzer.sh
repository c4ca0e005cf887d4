#!/usr/bin/env bash
# LLVM's libFuzzer over every decoder of Apple's data: it goes where coverage grows, and the address sanitizer watches.
#
#   libfuzzer.sh SWIFT SECONDS SEED
#
# Builds a program of its own below .build/fuzz. Ends with what was covered; not 0 when an input made a decoder fail, which then
# lies in .build/fuzz/found.
set -euo pipefail
swift=$1 seconds=$2 seed=$3
cd "$(dirname "$0")/../.."
place=.build/fuzz
mkdir -p "$place/found"
# What has been fetched for the whole program need not be fetched again.
for fetched in repositories checkouts artifacts workspace-state.json; do
  [ ! -e ".build/$fetched" ] || [ -e "$place/$fetched" ] || cp -a ".build/$fetched" "$place/$fetched"
done
export DEVELOPER_TOOLS=libfuzzer
options=(-c release --product fuzz --sanitize=fuzzer --sanitize=address -Xswiftc -enable-testing --scratch-path "$place")
"$swift" build "${options[@]}" > "$place/log" 2>&1 || { cat "$place/log"; exit 1; }
fuzz="$("$swift" build "${options[@]}" --show-bin-path)/fuzz"
# What is kept until the process ends is no leak.
status=0
ASAN_OPTIONS=detect_leaks=0 "$fuzz" "$place/found" Tests/Fuzz/Corpus -seed="$seed" -max_len=65536 -timeout=60 \
  -rss_limit_mb=4096 -max_total_time="$seconds" -artifact_prefix="$place/found/" -print_final_stats=1 > "$place/log" 2>&1 ||
  status=$?
grep -aE '^(==[0-9]+==ERROR|SUMMARY|Test unit written)' "$place/log" || true
echo "libFuzzer: $(sed -n -E 's/^stat::number_of_executed_units: //p' "$place/log") inputs, \
$(grep -aoE 'cov: [0-9]+ ft: [0-9]+' "$place/log" | tail -n 1) (edges, features), status $status"
exit "$status"
