#!/usr/bin/env bash
# Runs LLVM's libFuzzer on every decoder of Apple's data, with the address sanitizer.
#
#   libfuzzer.sh SWIFT SECONDS SEED
#
# Builds below .build/fuzz and prints the coverage. Fails if a decoder crashed; its input is then in .build/fuzz/found.
set -euo pipefail
swift=$1 seconds=$2 seed=$3
cd "$(dirname "$0")/../.."
place=.build/fuzz
mkdir -p "$place/found"
# Reuses the fetched dependencies of the main build.
for fetched in repositories checkouts artifacts workspace-state.json; do
  [ ! -e ".build/$fetched" ] || [ -e "$place/$fetched" ] || cp -a ".build/$fetched" "$place/$fetched"
done
export DEVELOPER_TOOLS=libfuzzer
options=(-c release --product fuzz --sanitize=fuzzer --sanitize=address -Xswiftc -enable-testing --scratch-path "$place")
"$swift" build "${options[@]}" > "$place/log" 2>&1 || { cat "$place/log"; exit 1; }
fuzz="$("$swift" build "${options[@]}" --show-bin-path)/fuzz"
# Memory that is in use until the process ends is no leak.
status=0
ASAN_OPTIONS=detect_leaks=0 "$fuzz" "$place/found" Tests/Fuzz/Corpus -seed="$seed" -max_len=65536 -timeout=60 \
  -rss_limit_mb=4096 -max_total_time="$seconds" -artifact_prefix="$place/found/" -print_final_stats=1 > "$place/log" 2>&1 ||
  status=$?
grep -aE '^(==[0-9]+==ERROR|SUMMARY|Test unit written)' "$place/log" || true
echo "libFuzzer: $(sed -n -E 's/^stat::number_of_executed_units: //p' "$place/log") inputs, \
$(grep -aoE 'cov: [0-9]+ ft: [0-9]+' "$place/log" | tail -n 1) (edges, features), status $status"
exit "$status"
