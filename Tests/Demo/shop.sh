# Sourced by the demo and by shell tests: private servers, the sample shop, a simulated Apple.
# Needs `name` and `binaries`; changes to `work`. Stops everything at the end, unless KEEP=1.

for variable in $(compgen -e); do
  case $variable in PG* | NIGHT_AUDIT_*) unset "$variable" ;; esac
done
export LC_ALL=C.UTF-8 TZ=UTC
# Short, because the path of a Unix socket has at most 107 bytes.
work=$(mktemp -d "/tmp/night-audit-$name.XXXXXX")
chmod 711 "$work"
cd "$work"
processes=() servers=()
# A fixed as-of, so that reports are the same each time.
as_of=2026-11-20T03:00:00Z

stop() {
  local status=$?
  trap '' INT TERM HUP
  if [ "$status" -eq 0 ] && [ "${KEEP:-}" = 1 ]; then
    exit 0
  fi
  [ ${#processes[@]} -eq 0 ] || kill -KILL "${processes[@]}" 2>/dev/null || true
  # SIGQUIT stops Postgres at once, because no data of these clusters is kept.
  [ ${#servers[@]} -eq 0 ] || kill -QUIT "${servers[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  if [ "$status" -ne 0 ]; then
    echo "The $name stopped with status $status. The ends of the logs:" >&2
    tail -n 5 "$work"/*.log >&2 2>/dev/null || true
  fi
  rm -rf "$work"
  exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

say() { printf '\n%s\n' "$1"; }

# wait_for SECONDS PROCESS COMMAND...: waits until the command succeeds, the time is over or the process is gone.
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

query() { psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username=shop --dbname=postgres "$@"; }

# start_server NAME OPTIONS: starts a cluster behind a socket in its folder of `work`, and at `port` if that is set.
start_server() {
  local folder=$work/$1
  shift
  mkdir "$folder"
  chown "$server_user" "$folder" 2>/dev/null || [ -O "$folder" ]
  # libpq, in the server too, looks for certificates in HOME.
  (
    cd /
    HOME=$folder "${as_server[@]}" "$programs/initdb" --pgdata="$folder/data" --username=shop --auth=trust \
      --encoding=UTF8 --locale=C --no-sync --no-instructions >"$folder.log" 2>&1
  )
  HOME=$folder "${as_server[@]}" "$programs/postgres" -D "$folder/data" -c listen_addresses= \
    -c unix_socket_directories="$folder" -c fsync=off -c synchronous_commit=off -c full_page_writes=off "$@" \
    >>"$folder.log" 2>&1 &
  servers+=($!)
  chmod 711 "$folder"
  wait_for 20 $! query --host="$folder" --port="${port:-5432}" --command='SELECT 1'
}

# start_apple OPTIONS: creates the sample shop in `shop` and starts its simulator at `apple`, with certificates in
# `roots`.
start_apple() {
  "$binaries/app-store-simulator" sample-shop --directory "$work/shop" --as-of "$as_of" "$@"
  mkdir "$work/roots"
  "$binaries/app-store-simulator" --world "$work/shop/world.json" --port-file "$work/port" \
    --root-certificate "$work/roots/root.pem" >"$work/simulator.log" 2>&1 &
  processes+=($!)
  wait_for 20 $! test -s "$work/port" || exit 70
  apple=http://127.0.0.1:$(cat "$work/port")
}

apple_settings() {
  cat <<YAML
  productionUrl: $apple/production
  sandboxUrl: $apple/sandbox
  verifyReceiptUrl: $apple/production/verifyReceipt
  verifyReceiptSandboxUrl: $apple/sandbox/verifyReceipt
  rootCertificates: $work/roots
  pinRoots: false
  requestsPerSecond: 10000
YAML
}

# load_shop CONFIGURATION COMMAND...: creates the relations and fills them with this psql command.
load_shop() {
  "$binaries/night-audit" init --with-sales-schema --config "$1"
  shift
  "$@" <<SQL
\copy sales.orders from '$work/shop/orders.csv' (format csv, header)
\copy sales.receipts from '$work/shop/receipts.csv' (format csv, header)
\copy sales.deliveries from '$work/shop/deliveries.csv' (format csv, header)
analyze;
SQL
}
