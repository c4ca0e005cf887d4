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
after_outage=2026-11-19T05:00:00Z
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
  formats: [csv, xlsx, stripe-import]
journal:
  accounts:
    sale: "4000 App Store sales"
    refund: "4010 App Store refunds"
    adjustment: "4020 Prior-period adjustments"
    commission: "5000 App Store commission"
    tax: "2200 Taxes withheld by Apple"
    receivable: "1200 Receivable from Apple"
    payout: "1000 Bank"
YAML
load_shop "$work/night-audit.yaml" "${ask[@]}"

# simulator PATH FILE WORD: posts a file to the simulator, which answers with this word.
simulator() {
  exec 3<>"/dev/tcp/127.0.0.1/$(cat "$work/port")"
  printf 'POST /simulator/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nConnection: close\r\n\r\n' \
    "$1" "$(stat --format=%s "$2")" >&3
  cat "$2" >&3
  grep -q "\"$3\"" <&3
  exec 3>&-
}

# night AS-OF STATUS: one night as cron starts it, with the simulator's clock at the same time.
night() {
  local status=0
  echo "{\"now\":$(date --date="$1" +%s)000}" >"$work/clock.json"
  simulator clock "$work/clock.json" now
  "$binaries/night-audit" run --config "$work/night-audit.yaml" --as-of "$1" || status=$?
  [ "$status" -eq "$2" ] || exit $((status > 0 ? status : 70))
}

say "3. The night of 2026-11-18, the first one. Apple does not answer about eight receipts: exit status 3"
night "$night_before" 3 | sed -n '1,/^Findings:/p'

say "4. The same night again, two hours later: Apple answers, and the report is complete"
simulator world "$work/shop/world-answered.json" receipts
night "$after_outage" 0 | sed -n '1,/^Findings:/p'

say "5. The night of 2026-11-19"
night "$as_of" 0

say "6. The same facts for finance: all $since to $until, without asking Apple again"
"$binaries/night-audit" reconcile --config "$work/night-audit.yaml" --as-of "$as_of" \
  --since "$since" --until "$until" --out "$reports/sample-60-days" | sed '/^Findings:/,$d'

order=$("${ask[@]}" --tuples-only --no-align --command="
  SELECT order_id FROM night_audit.bi_findings WHERE kind = 'delivered_not_paid' AND closed_at IS NULL
  ORDER BY at_stake DESC NULLS LAST, order_id LIMIT 1")
commands=("explain $order" "findings list --severity critical" "runs diff 2026-11-18 2026-11-19")
say "7. Three commands for ops, the beginning of what each of them says"
for command in "${commands[@]}"; do
  printf '\n$ night-audit %s\n' "$command"
  # shellcheck disable=SC2086 # The words of a command.
  { "$binaries/night-audit" $command --config "$work/night-audit.yaml" || true; } | sed -n '1,8p;9s/.*/  .../p'
done

say "8. What Apple counted, beside what is known here; gross per month and country for the tax form"
"$binaries/night-audit" tie-out --config "$work/night-audit.yaml" --as-of "$as_of" --year 2026 || [ $? -eq 3 ]

say "Reports:"
echo "  $reports/latest/                 the night of 2026-11-19: workbook, CSV, summary.json"
echo "  $reports/sample-60-days/         the sixty days before it"
if [ "${KEEP:-}" = 1 ]; then
  say "The shop goes on running. To try more:"
  for command in "${commands[@]}"; do
    echo "  $binaries/night-audit $command --config $work/night-audit.yaml"
  done
  echo "To stop it:  kill ${servers[0]} ${processes[0]}; rm -rf $work"
else
  say "To try these yourself: make demo KEEP=1"
fi
