#!/usr/bin/env bash
# Runs two nights of a sample shop with a private Postgres and a simulated Apple. KEEP=1 keeps them running.
# usage: demo.sh BINARIES REPORTS
set -euo pipefail

binaries=$(cd "${1:?usage: demo.sh BINARIES REPORTS}" && pwd)
mkdir -p "${2:?usage: demo.sh BINARIES REPORTS}"
reports=$(cd "$2" && pwd)
# The database is new each time, and a night replaces no report of a run that its database does not know.
for folder in 2026-11-18 2026-11-19 sample-60-days; do
  # Only reports of the sample shop: a report of a real shop stays, and the night says so.
  if grep -q com.example.game "$reports/$folder/report.html" 2>/dev/null; then rm -rf "${reports:?}/$folder"; fi
done
night_before=2026-11-19T03:00:00Z
since=2026-09-21
until=2026-11-20
name=demo
source "$(dirname "${BASH_SOURCE[0]}")/shop.sh"

say "1. A private database"
start_server cluster
ask=(query --host="$work/cluster")

say "2. A shop of 5,000 orders in two apps, and Apple's side of it"
start_apple --quiz

cat >"$work/night-audit.yaml" <<YAML
database:
  url: "host=$work/cluster user=shop dbname=postgres"
appstore:
  apps: [game, quiz]
$(apple_settings)
app:
  game:
    bundleId: com.example.game
    appAppleId: 1234567890
    sku: GAME01
    sharedSecretFile: $work/shop/shared-secret
  quiz:
    bundleId: com.example.quiz
    appAppleId: 1234567892
    sku: QUIZ01
    issuerId: 57246542-96fe-1a63-e053-0824d011072b
    keyId: QUIZKEY
    privateKeyFile: $work/shop/SubscriptionKey_QUIZKEY.p8
appStoreConnect:
  issuerId: 57246542-96fe-1a63-e053-0824d011072a
  keyId: SAMPLE
  privateKeyFile: $work/shop/AuthKey_SAMPLE.p8
  vendorNumbers: ["80012345"]
  url: $apple
audit:
  testUsers:
$(sed 's/.*/    - "&"/' "$work/shop/test-users.txt")
report:
  directory: $reports
YAML
load_shop "$work/night-audit.yaml" "${ask[@]}"

# night AS-OF: one night as cron starts it, with the simulator's clock at the same time.
night() {
  local status=0 now
  now="{\"now\":$(date --date="$1" +%s)000}"
  exec 3<>"/dev/tcp/127.0.0.1/$(cat "$work/port")"
  printf 'POST /simulator/clock HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' \
    ${#now} "$now" >&3
  grep -q '"now"' <&3
  exec 3>&-
  "$binaries/night-audit" run --config "$work/night-audit.yaml" --as-of "$1" || status=$?
  case $status in
    0) ;;
    3) is_incomplete=yes ;;
    *) exit "$status" ;;
  esac
}
is_incomplete=''

say "3. The night of 2026-11-18, the first one"
night "$night_before" | sed -n '1,/^Findings:/p'

say "4. The night of 2026-11-19"
night "$as_of"

say "5. The same facts for finance: all $since to $until, without asking Apple again"
{
  "$binaries/night-audit" reconcile --config "$work/night-audit.yaml" --as-of "$as_of" \
    --since "$since" --until "$until" --out "$reports/sample-60-days" || [ $? -eq 3 ]
} | sed '/^Findings:/,$d'

order=$("${ask[@]}" --tuples-only --no-align --command="
  SELECT order_id FROM night_audit.bi_findings WHERE kind = 'delivered_not_paid' AND closed_at IS NULL
  ORDER BY at_stake DESC NULLS LAST, order_id LIMIT 1")
commands=("explain $order" "findings list --severity critical" "runs diff 2026-11-18 2026-11-19")
say "6. Three commands for ops, the beginning of what each of them says"
for command in "${commands[@]}"; do
  printf '\n$ night-audit %s\n' "$command"
  # shellcheck disable=SC2086 # The words of a command.
  { "$binaries/night-audit" $command --config "$work/night-audit.yaml" || true; } | sed -n '1,8p;9s/.*/  .../p'
done

say "7. What Apple counted, beside what is known here; gross per month and country for the tax form"
"$binaries/night-audit" tie-out --config "$work/night-audit.yaml" --as-of "$as_of" --year 2026 || [ $? -eq 3 ]

say "Reports:"
echo "  $reports/latest/                 the night of 2026-11-19: workbook, CSV, summary.json"
echo "  $reports/sample-60-days/         the sixty days before it"
if [ -n "$is_incomplete" ]; then
  cat <<'TXT'
A night ended with exit status 3: reports are written, but incomplete. Apple had no answer for a handful of receipts
(the sample makes sure of that), and no order is called unpaid because of it. They are asked about again the next night.
TXT
fi
if [ "${KEEP:-}" = 1 ]; then
  say "The shop goes on running. To try more:"
  for command in "${commands[@]}"; do
    echo "  $binaries/night-audit $command --config $work/night-audit.yaml"
  done
  echo "To stop it:  kill ${servers[0]} ${processes[0]}; rm -rf $work"
else
  say "To try these yourself: make demo KEEP=1"
fi
