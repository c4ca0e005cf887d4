# Sourced by shell tests: a private server with the sample shop, a simulator, and a configuration.
# Needs `name`, `binaries`, `orders` and `python`.

source "$(dirname "${BASH_SOURCE[0]}")/../Demo/shop.sh"

fail() {
  echo "$name: $1" >&2
  exit 1
}
free_port() { "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# listen NAME OPTIONS: starts a server that also listens at `port` of loopback.
listen() {
  port=$(free_port)
  start_server "$@" -c listen_addresses=127.0.0.1 -c port="$port"
}
at() {
  local port=$1
  shift
  query --host=127.0.0.1 --port="$port" "$@"
}
# configure FILE DATABASE REPORTS LINE: writes a configuration, with an extra line about its database.
configure() {
  cat >"$1" <<YAML
database:
  url: "host=127.0.0.1 port=$port user=shop dbname=$2"
${4:-}
appstore:
  apps: [game]
$(apple_settings)
app:
  game:
    bundleId: com.example.game
    sharedSecretFile: $work/shop/shared-secret
report:
  directory: $work/$3
YAML
}
# The sample shop is always incomplete (3).
allowing_incomplete() { "$@" || [ $? -eq 3 ]; }

say "A shop of $orders orders, and a simulated Apple"
listen shop-server
shop_port=$port
ask=(at "$shop_port")
start_apple --orders "$orders"
configure night-audit.yaml postgres reports
load_shop night-audit.yaml "${ask[@]}" >/dev/null
