# Sourced: runs the README's commands from the shop's database to the first night.
# Needs repository, root (a file system with program and user), scratch, and the functions inside, say and fail.
# stop_server ends the server that it starts.

# block LANGUAGE PATTERN FILE: the code block of this language that has a matching line.
block() {
  awk -v language="$1" -v pattern="$2" '
    $0 == "```" language { inside = 1; text = ""; next }
    $0 == "```" && inside { inside = 0; if (text ~ pattern) { printf "%s", text; exit } }
    inside { text = text $0 "\n" }' "$repository/$3"
}
as_postgres() { inside setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
sql() { as_postgres psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --host=/tmp --dbname="${database:-shop}" "$@"; }
bin=''
stop_server() { [ -z "$bin" ] || as_postgres "$bin/pg_ctl" stop --pgdata=/tmp/cluster/data --mode=immediate --silent || true; }

first_night() {
  say "A database of a shop with tables of its own"
  inside install -d -o postgres /tmp/cluster /run/postgresql
  bin=$(dirname "$(compgen -G "$root/usr/lib/postgresql/*/bin/initdb" | sort -V | tail -n 1)")
  bin=${bin#"$root"}
  as_postgres "$bin/initdb" --pgdata=/tmp/cluster/data --auth=trust --no-sync >/dev/null
  as_postgres "$bin/pg_ctl" start --pgdata=/tmp/cluster/data --log=/tmp/cluster/log --wait --silent \
    --options="-c listen_addresses= -c fsync=off -c unix_socket_directories=/tmp,/run/postgresql" ||
    fail "$(cat "$root/tmp/cluster/log")"
  as_postgres createdb --host=/tmp shop
  sql <<'SQL'
CREATE TABLE public.products (id bigint PRIMARY KEY, app_store_id text NOT NULL);
CREATE TABLE public.purchases (id bigint PRIMARY KEY, account_id bigint NOT NULL, product_id bigint NOT NULL, qty integer NOT NULL,
  price_minor bigint NOT NULL, currency char(3) NOT NULL, state smallint NOT NULL, apple_transaction text, store_token uuid,
  created timestamptz NOT NULL, paid timestamptz, modified timestamptz NOT NULL, store text NOT NULL DEFAULT 'apple');
CREATE TABLE public.apple_receipts (id bigint PRIMARY KEY, purchase_id bigint, account_id bigint, receipt text NOT NULL,
  is_sandbox boolean, check_state smallint NOT NULL, checked timestamptz, received timestamptz NOT NULL);
CREATE TABLE public.inventory_grants (id bigint PRIMARY KEY, purchase_id bigint, account_id bigint NOT NULL,
  product_id bigint NOT NULL, units integer NOT NULL, granted timestamptz NOT NULL, taken_back timestamptz);
INSERT INTO public.products VALUES (1, 'gems.100');
INSERT INTO public.purchases (id, account_id, product_id, qty, price_minor, currency, state, created, modified)
  SELECT n, 100 + n, 1, 1, 499, 'USD', 3, now() - interval '20 hours', now() FROM generate_series(1, 30) n;
SQL

  local views=Sources/night-audit/Documentation.docc/Views.md

  say "README, Point it at your own tables"
  block sql 'VIEW sales.orders' README.md >"$root/tmp/orders.sql"
  [ -s "$root/tmp/orders.sql" ] || fail "the README lacks the view of orders"
  sql --file=/tmp/orders.sql
  # The page Views has receipts and deliveries, and orders, too.
  block sql 'VIEW sales.orders' $views | sed 's/^CREATE SCHEMA sales;//; s/CREATE VIEW/CREATE OR REPLACE VIEW/' >"$root/tmp/views.sql"
  sql --command='DROP VIEW sales.orders' --file=/tmp/views.sql

  say "README, One role"
  block sql 'CREATE ROLE night_audit' README.md >"$root/tmp/role.sql"
  [ -s "$root/tmp/role.sql" ] || fail "the README lacks the role"
  sql --file=/tmp/role.sql

  say "README, Configuration"
  block yaml 'sharedSecretFile' README.md |
    sed 's|^  url: .*|  url: host=/tmp user=night_audit dbname=shop|' >"$root/etc/night-audit/night-audit.yaml"
  grep -q 'host=/tmp' "$root/etc/night-audit/night-audit.yaml" || fail "the README lacks the configuration"
  inside install -o night-audit -m 0600 /dev/stdin /etc/night-audit/shared-secret <<<0123456789abcdef0123456789abcdef

  say "README, First night"
  # The commands are run line by line, as a person types them.
  while read -r line; do
    command=${line%%#*}
    case $command in
      '') continue ;;
      *'night-audit trust'*)
        # Without a connection to Apple the message must name the alternative. verifyReceipt works without root certificates.
        # shellcheck disable=SC2086
        inside ${command#sudo } >"$scratch/out" 2>&1 || grep -q -- 'https://www.apple.com' "$scratch/out" || fail "$(cat "$scratch/out")"
        continue
        ;;
    esac
    words=${command#sudo -u night-audit }
    [ "$words" != "$command" ] || fail "this test does not know the README's command: $command"
    status=0
    # shellcheck disable=SC2086
    inside setpriv --reuid=night-audit --regid=night-audit --clear-groups sh -c "cd / && exec $words" >"$scratch/out" 2>&1 || status=$?
    echo "$command exits with $status"
    [ $status -eq 0 ] || { cat "$scratch/out" >&2; fail "$command"; }
  done < <(block sh 'night-audit init' README.md)
  [ -L "$root/var/lib/night-audit/reports/latest" ] || fail "there is no report"
}
