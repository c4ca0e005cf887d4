#!/usr/bin/env bash
# Runs random worlds, orders of arrival, kills, cut connections, server faults, failing system calls and hostile bytes
# for hours.
#
#   torture.sh SWIFT NIGHTS SEED     NIGHTS: the minimum of killed and cut nights; the other effort is proportional
#
# SEED determines all inputs; a failure prints how to repeat it. Fails if any test failed.
set -euo pipefail
swift=$1 nights=$2 seed=$3
log=$(mktemp) sanitized=$(mktemp)
trap 'kill -- -"$sanitizers" 2>/dev/null || true; rm -f "$log" "$sanitized"' EXIT
# A unit of effort is six kills and six cuts.
effort=$(((nights + 9) / 10))

tried=0 failed=0 faults=0 nights_tried=0 nights_run=0
stage() {
  echo "== $1, seed $seed, effort ${3:-$effort}"
  TEST_SEED=$seed TEST_EFFORT=${3:-$effort} SWIFT_BACKTRACE=enable=no \
    "$swift" test --skip-build --no-parallel --filter "$2" > "$log" 2>&1 || true
  if ! grep -q '^. Test run with [1-9]' "$log"; then
    cat "$log"
    echo "== $1: the tests did not come to their end"
    failed=$((failed + 1))
    return
  fi
  awk -F '[ ,]+' '/^DeterministicNightsTests: / { n += $2; k += $4; q += $6; v += $8 }
    END { if (n) print "== " n " nights, " k " kills, " q " questions, " v " of them in vain" }' "$log"
  nights_run=$((nights_run + $(sed -n -E 's/^KnownTruthNightTests: ([0-9]+) nights.*/\1/p' "$log" | paste -sd+ - | sed 's/^$/0/')))
  nights_tried=$((nights_tried + $(sed -n -E 's/^DeterministicNightsTests: ([0-9]+) nights.*/\1/p' "$log" | paste -sd+ - | sed 's/^$/0/')))
  sed -n -E 's/^[A-Za-z]+Tests: ([0-9]+) of ([0-9]+) (faults|instants).*/== \1 of \2 \3/p' "$log"
  sed -n -E 's/^. Test (.*) skipped.*/== passed over: \1/p' "$log"
  faults=$((faults + $(sed -n -E 's/^[A-Za-z]+Tests: ([0-9]+) of [0-9]+ (faults|instants).*/\1/p' "$log" | paste -sd+ - | sed 's/^$/0/')))
  grep -E '^. Test ".*" failed|recorded an issue|^↳' "$log" | grep -v 'Testing Library\|Target Platform' || true
  local count failures
  count=$(grep -c ' with .* test case.* passed after\|^✔ Test .* passed after\|^✘ Test .* failed after' "$log" || true)
  failures=$(grep -c '^✘ Test .* failed after' "$log" || true)
  failures=$((failures - $(grep -c '^✘ Test run' "$log" || true)))
  [ "$failures" -ge 0 ] || failures=0
  echo "== $1: $count properties and scenarios, violations: $failures"
  tried=$((tried + count)) failed=$((failed + failures))
}

# The sanitizers run in parallel, because each takes as long as everything else. They have their own process group,
# which ends with this script.
set -m
for sanitizer in thread address; do
  if Tests/Torture/sanitized.py "$sanitizer" --swift "$swift"; then echo "== passed"; else echo "== failed"; fi
done > "$sanitized" 2>&1 &
sanitizers=$!
set +m

stage 'random worlds, answers withheld, in any order' 'ReconciliationTests'
# A unit is about 650 nights.
stage 'sequences of nights without a server' 'DeterministicNightsTests' $((effort * 16 / 10 + 1))
# A unit is about seven nights.
stage 'sequences of nights of the whole program' 'KnownTruthNightTests' $((nights / 7 + 1))
stage 'nights with real Postgres, in any order of arrival' 'InputOrderTests'
stage 'killed nights and cut connections' 'KilledNightTests|CutConnectionTests'
# From 100 nights on, all profiles and all payloads.
stage 'nights under each fault profile of Apple' 'FaultProfileTests' $((nights < 100 ? 1 : 2))
stage 'hostile rows, huge payloads, ten thousand claims on one payment' 'HostileDataTests' $((nights < 100 ? 1 : 2))
# From 100 nights on, 3,000 of each kind.
stage 'chains and receipts in all forms of DER' 'RareEncodingTests' $((nights < 100 ? 2 : 20))
stage 'clocks that jump, days of 23 and 25 hours, midnight, a standby that is promoted' 'ClockTests|PromotionTests' \
  $((nights < 100 ? 1 : 8))
stage 'sessions ended, statements cancelled, servers started anew, conflicts, volumes that are gone' \
  'ServerFaultTests|StoreConflictTests'
# From 1,000 nights on, each call fails with each error, and the program is killed at each.
stage 'system calls that fail, or that a night is killed at' 'aFailedSystemCall|aKillAtASystemCall|aNightKilledDuringCleanup|aKilledUndoOfARun|aKilledReleaseOfANight' \
  $((effort * 12))
stage 'volumes that become read-only or full' 'aFullVolumeIsReported' "$effort"
stage 'rows changed by somebody with all rights, secrets, roles' 'TrailTests|SecretsTests|RolesTests'

inputs=$((nights * 10000))
echo "== fuzzing: $inputs inputs, seed $seed"
DEVELOPER_TOOLS=1 "$swift" build --product fuzz
if SWIFT_BACKTRACE=enable=no "$(DEVELOPER_TOOLS=1 "$swift" build --show-bin-path)/fuzz" --inputs "$inputs" --seed "$seed"; then
  echo "== fuzzing: $inputs inputs, violations: 0"
else
  failed=$((failed + 1))
  echo '== fuzzing: violations: 1 (the input is named above)'
fi

# libFuzzer is guided by coverage. Swift has no sanitizer of undefined behaviour on Linux; it traps overflows.
seconds=$((nights * 36 / 10))
echo "== libFuzzer: $seconds seconds, seed $seed"
Tests/Torture/libfuzzer.sh "$swift" "$seconds" "$seed" || failed=$((failed + 1))

wait "$sanitizers" || true
echo '== sanitizers of threads and of addresses'
cat "$sanitized"
tried=$((tried + 2)) failed=$((failed + 2 - $(grep -c '^== passed' "$sanitized" || true)))

echo
echo "nights: $nights_tried in process, $nights_run of the whole program; faults injected: $((faults + effort * 2)); properties and scenarios: $tried; hostile inputs: $inputs; violations: $failed"
[ "$failed" -eq 0 ]
