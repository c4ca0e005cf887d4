#!/usr/bin/env bash
# Two nights of an earlier release, then this one: nothing that people and nights have said is lost, and what is told is what a
# shop is told that never had another release.
# usage: upgrade.sh EARLIER BINARIES   EARLIER: the earlier release's program
set -euo pipefail

earlier=$(readlink -f "${1:?usage: upgrade.sh EARLIER BINARIES}")
binaries=$(cd "${2:?usage: upgrade.sh EARLIER BINARIES}" && pwd)
name=upgrade
source "$(dirname "${BASH_SOURCE[0]}")/../Demo/shop.sh"

start_apple --quiz

# settings NAME: of a shop in a server of that name.
settings() {
  cat >"$work/$1.yaml" <<YAML
database:
  url: "host=$work/$1 user=shop dbname=postgres"
appstore:
  apps: [game, quiz]
$(apple_settings)
app:
  game:
    bundleId: com.example.game
    appAppleId: 1234567890
    sharedSecretFile: $work/shop/shared-secret
  quiz:
    bundleId: com.example.quiz
    appAppleId: 1234567892
    issuerId: 57246542-96fe-1a63-e053-0824d011072b
    keyId: QUIZKEY
    privateKeyFile: $work/shop/SubscriptionKey_QUIZKEY.p8
audit:
  testUsers:
$(sed 's/.*/    - "&"/' "$work/shop/test-users.txt")
report:
  directory: $work/$1-reports
  formats: [csv]
YAML
}

# run SHOP PROGRAM ARGUMENTS: a command that may find something.
run() {
  local shop=$1 program=$2 status=0
  shift 2
  "$program" "$@" --config "$work/$shop.yaml" >>"$work/$shop-said.log" 2>&1 || status=$?
  case $status in
    0 | 3) ;;
    *)
      echo "$program $* ended with $status" >&2
      exit 1
      ;;
  esac
}

# Nights of any date, whatever day it is here.
export NIGHT_AUDIT_AUDIT_CLOCK_SKEW=3650d
now=$binaries/night-audit
for shop in upgraded new; do
  start_server "$shop"
  settings "$shop"
  program=$now
  [ $shop = new ] || program=$earlier
  run "$shop" "$program" init --with-sales-schema
  query --host="$work/$shop" <<SQL
\copy sales.orders from '$work/shop/orders.csv' (format csv, header)
\copy sales.receipts from '$work/shop/receipts.csv' (format csv, header)
\copy sales.deliveries from '$work/shop/deliveries.csv' (format csv, header)
analyze;
SQL
  for night in 2026-11-18 2026-11-19; do run "$shop" "$program" run --as-of "${night}T03:00:00Z"; done
  for finding in $(query --host="$work/$shop" --tuples-only --no-align --command="
    SELECT finding_id FROM night_audit.findings WHERE closed_at IS NULL AND kind = 'delivered_not_paid'
    ORDER BY order_id LIMIT 3"); do
    run "$shop" "$program" findings acknowledge "$finding"
    run "$shop" "$program" findings assign "$finding" --to Ana
  done
  run "$shop" "$now" init
  # What the earlier release has not written down is known when all has been asked about once more.
  for night in 2026-11-20 2026-11-28; do run "$shop" "$now" run --as-of "${night}T03:00:00Z"; done
  for command in verify rebuild; do run "$shop" "$now" "$command"; done
done

# told SHOP: findings and what people made of them, and which proofs hold what.
told() {
  python3 - "$work/$1-reports/2026-11-27" <<'PY'
import csv, sys
for name, columns in (
    ("findings.csv", ["finding_id", "kind", "severity", "order_id", "user_id", "transaction_id", "at_stake", "status", "owner"]),
    ("receipts.csv", ["receipt_id", "outcome", "reason", "environment"]),
):
    with open(f"{sys.argv[1]}/{name}", newline="", encoding="utf-8-sig") as file:
        for row in csv.DictReader(file):
            print(name, *(row[column] for column in columns), sep="\t")
PY
}
told upgraded >"$work/upgraded.txt"
told new >"$work/new.txt"
acknowledged=$(grep -c 'acknowledged.Ana$' "$work/upgraded.txt")
[ "$acknowledged" -eq 3 ] || { echo "of three findings that people took care of $acknowledged are left" >&2; exit 1; }
if ! diff "$work/upgraded.txt" "$work/new.txt"; then
  echo "the upgraded shop (<) is told something else than one that never had another release (>)" >&2
  exit 1
fi
echo "upgrade: $(wc -l <"$work/new.txt") findings and receipts alike, after two nights of $("$earlier" --version) and two of this release"
