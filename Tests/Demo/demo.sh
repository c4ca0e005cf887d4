#!/usr/bin/env bash
# Two nights of a sample shop: a private Postgres, a simulated Apple, real reports. Stops everything that it started, unless
# KEEP=1.
# usage: demo.sh BINARIES REPORTS
set -euo pipefail

binaries=$(cd "${1:?usage: demo.sh BINARIES REPORTS}" && pwd)
mkdir -p "${2:?usage: demo.sh BINARIES REPORTS}"
reports=$(cd "$2" && pwd)
# The sample shop is made for this instant, so that the reports are the same each time.
as_of=2026-11-20T03:00:00Z
night_before=2026-11-19T03:00:00Z
since=2026-09-21
until=2026-11-20

# Nobody's settings but ours: neither libpq's nor night-audit's.
for variable in $(compgen -e); do
  case $variable in PG* | NIGHT_AUDIT_*) unset "$variable" ;; esac
done
export LC_ALL=C.UTF-8

# Short, because the path of a Unix socket has at most 107 bytes. mktemp puts letters of its own in the place of the six.
work=$(mktemp -d /tmp/night-audit-demo.XXXXXX)
server='' simulator=''

stop() {
  local status=$?
  trap '' INT TERM HUP
  if [ "$status" -eq 0 ] && [ "${KEEP:-}" = 1 ]; then
    exit 0
  fi
  [ -z "$simulator" ] || kill -TERM "$simulator" 2>/dev/null || true
  # SIGQUIT: Postgres stops at once, and nothing of this cluster is kept.
  [ -z "$server" ] || kill -QUIT "$server" 2>/dev/null || true
  wait 2>/dev/null || true
  if [ "$status" -ne 0 ] && [ -e "$work/server.log" ]; then
    echo "The demo stopped with status $status. The end of the database's log:" >&2
    tail -n 5 "$work/server.log" >&2
  fi
  rm -rf "$work"
  exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

say() { printf '\n%s\n' "$1"; }

# wait_for SECONDS PROCESS COMMAND...: until the command succeeds; not longer, and not for a process that is gone.
wait_for() {
  local attempts=$(($1 * 20)) process=$2
  shift 2
  while ! "$@" >/dev/null 2>&1; do
    kill -0 "$process" 2>/dev/null || return 1
    [ $((attempts -= 1)) -gt 0 ] || return 1
    sleep 0.05
  done
}

# initdb and postgres refuse to run as root.
as_server=()
server_user=$(id -un)
if [ "$(id -u)" -eq 0 ]; then
  server_user=postgres
  id postgres >/dev/null 2>&1 || server_user=nobody
  as_server=(setpriv "--reuid=$server_user" "--regid=$(id -g "$server_user")" --clear-groups)
fi

find_server_programs() {
  local newest
  newest=$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -n 1) || true
  [ -n "$newest" ] || newest=$(command -v initdb)
  dirname "$(readlink -f "$newest")"
}
programs=$(find_server_programs)

say "1. A private database"
chmod 711 "$work"
mkdir "$work/cluster"
chown "$server_user" "$work/cluster" 2>/dev/null || [ -O "$work/cluster" ]
(
  cd /
  "${as_server[@]}" "$programs/initdb" --pgdata="$work/cluster/data" --username=shop --auth=trust --encoding=UTF8 \
    --locale=C --no-sync >"$work/server.log" 2>&1
)
cd "$work"
"${as_server[@]}" "$programs/postgres" -D "$work/cluster/data" -c listen_addresses= \
  -c unix_socket_directories="$work/cluster" -c fsync=off -c synchronous_commit=off -c full_page_writes=off \
  >>"$work/server.log" 2>&1 &
server=$!
chmod 711 "$work/cluster"
ask=(psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --host="$work/cluster" --username=shop --dbname=postgres)
wait_for 20 "$server" "${ask[@]}" --command='SELECT 1'

say "2. A shop of 5,000 orders in two apps, and Apple's side of it"
"$binaries/app-store-simulator" sample-shop --directory "$work/shop" --as-of "$as_of" --quiz
mkdir "$work/roots"
"$binaries/app-store-simulator" --world "$work/shop/world.json" --port-file "$work/port" \
  --root-certificate "$work/roots/root.pem" >"$work/simulator.log" 2>&1 &
simulator=$!
if ! wait_for 20 "$simulator" test -s "$work/port"; then
  cat "$work/simulator.log" >&2
  exit 70
fi
apple=http://127.0.0.1:$(cat "$work/port")

cat >"$work/night-audit.yaml" <<YAML
database:
  url: "host=$work/cluster user=shop dbname=postgres"
appstore:
  apps: [game, quiz]
  productionUrl: $apple/production
  sandboxUrl: $apple/sandbox
  verifyReceiptUrl: $apple/production/verifyReceipt
  verifyReceiptSandboxUrl: $apple/sandbox/verifyReceipt
  rootCertificates: $work/roots
  pinRoots: false
  requestsPerSecond: 10000
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
export TZ=UTC
"$binaries/night-audit" init --with-sales-schema --config "$work/night-audit.yaml"
"${ask[@]}" <<SQL
\copy sales.orders from '$work/shop/orders.csv' (format csv, header)
\copy sales.receipts from '$work/shop/receipts.csv' (format csv, header)
\copy sales.deliveries from '$work/shop/deliveries.csv' (format csv, header)
analyze;
SQL

# night AS-OF: one night, as cron would start it, with Apple's clock at the same instant.
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
# The findings are those of the night, and just above.
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
  echo "To stop it:  kill $server $simulator; rm -rf $work"
else
  say "To try these yourself: make demo KEEP=1"
fi
