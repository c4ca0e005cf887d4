# The sample shop of a test that is a shell script: a private server with its relations, a simulator of Apple, and a
# configuration. Whoever sources it has set `name`, `binaries`, `orders` and `python`; all that is started here is stopped at
# the end.

for variable in $(compgen -e); do
  case $variable in PG* | NIGHT_AUDIT_*) unset "$variable" ;; esac
done
export LC_ALL=C.UTF-8 TZ=UTC
work=$(mktemp -d "/tmp/night-audit-$name.XXXXXX")
processes=() servers=()

stop() {
  local status=$?
  trap '' INT TERM HUP
  [ ${#processes[@]} -eq 0 ] || kill -KILL "${processes[@]}" 2>/dev/null || true
  [ ${#servers[@]} -eq 0 ] || kill -QUIT "${servers[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  [ "$status" -eq 0 ] || tail -n 30 "$work"/*.log >&2 2>/dev/null || true
  rm -rf "$work"
  exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

say() { printf '\n%s\n' "$1"; }
fail() {
  echo "$name: $1" >&2
  exit 1
}
# wait_for SECONDS PROCESS COMMAND: until it succeeds.
wait_for() {
  local attempts=$(($1 * 20)) process=$2
  shift 2
  while ! "$@" >/dev/null 2>&1; do
    kill -0 "$process" 2>/dev/null || return 1
    [ $((attempts -= 1)) -gt 0 ] || return 1
    sleep 0.05
  done
}
free_port() { "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

as_server=()
server_user=$(id -un)
if [ "$(id -u)" -eq 0 ]; then
  server_user=postgres
  id postgres >/dev/null 2>&1 || server_user=nobody
  as_server=(setpriv "--reuid=$server_user" "--regid=$(id -g "$server_user")" --clear-groups)
fi
programs=$(dirname "$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -n 1)")
chmod 711 "$work"
cd "$work"
# start_server NAME OPTIONS: a cluster of its own on loopback, at `port`.
start_server() {
  local folder=$work/$1
  shift
  mkdir "$folder"
  chown "$server_user" "$folder"
  port=$(free_port)
  # libpq, in the server too, looks for certificates at home.
  (cd / && HOME=$folder "${as_server[@]}" "$programs/initdb" --pgdata="$folder/data" --username=shop --auth=trust \
    --encoding=UTF8 --locale=C --no-sync --no-instructions >"$folder.log" 2>&1)
  HOME=$folder "${as_server[@]}" "$programs/postgres" -D "$folder/data" -c listen_addresses=127.0.0.1 -c port="$port" \
    -c unix_socket_directories="$folder" -c fsync=off -c full_page_writes=off "$@" >>"$folder.log" 2>&1 &
  servers+=($!)
  wait_for 20 $! at "$port" --command='SELECT 1'
}
# at PORT OPTIONS: psql at a server.
at() {
  local port=$1
  shift
  psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --host=127.0.0.1 --port="$port" --username=shop --dbname=postgres "$@"
}
# configure FILE DATABASE REPORTS LINE: a configuration, with a further line about its database.
configure() {
  cat >"$1" <<YAML
database:
  url: "host=127.0.0.1 port=$port user=shop dbname=$2"
${4:-}
appstore:
  apps: [game]
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
    sharedSecretFile: $work/shop/shared-secret
report:
  directory: $work/$3
YAML
}
# Whatever is incomplete about the sample shop (3) is so everywhere.
allowing_incomplete() { "$@" || [ $? -eq 3 ]; }

say "A shop of $orders orders, and what Apple says about them"
start_server shop-server
shop_port=$port
ask=(at "$shop_port")
as_of=2026-11-20T03:00:00Z
"$binaries/app-store-simulator" sample-shop --directory shop --as-of "$as_of" --orders "$orders"
mkdir roots
"$binaries/app-store-simulator" --world shop/world.json --port-file simulator.port --root-certificate roots/root.pem \
  >simulator.log 2>&1 &
processes+=($!)
wait_for 20 $! test -s simulator.port
apple=http://127.0.0.1:$(cat simulator.port)
configure night-audit.yaml postgres reports
"$binaries/night-audit" init --with-sales-schema --config night-audit.yaml >/dev/null
"${ask[@]}" <<SQL
\copy sales.orders from 'shop/orders.csv' (format csv, header)
\copy sales.receipts from 'shop/receipts.csv' (format csv, header)
\copy sales.deliveries from 'shop/deliveries.csv' (format csv, header)
SQL
