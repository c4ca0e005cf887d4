#!/usr/bin/env bash
# A machine of its own, as far as files and processes go: every command of the README, in its order, then Debian's own cron
# with a mail captured. What is written stays in memory and is gone afterwards.
# usage: host.sh PROGRAM
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=$(realpath "${1:?usage: host.sh PROGRAM}")

if [ "${2:-}" != inside ]; then
  [ "$(id -u)" -eq 0 ] && unshare --mount --pid --fork true 2>/dev/null || {
    echo "host: passed over, because a machine of its own can only be made by root, with the right to mount"
    exit 0
  }
  # cron as Debian has it, unpacked into the machine and not installed on this one.
  mkdir -p "$repository/.build/real-parts/cron"
  (cd "$repository/.build/real-parts/cron" && { ls cron_*.deb >/dev/null 2>&1 || apt-get download --quiet --quiet -o APT::Sandbox::User=root cron; })
  exec unshare --mount --pid --fork --kill-child "$0" "$program" inside
fi

memory=$(mktemp -d)
mount -t tmpfs tmpfs "$memory"
mkdir "$memory/upper" "$memory/work" "$memory/root"
root=$memory/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$memory/upper,workdir=$memory/work" "$root" || {
  echo "host: passed over, because this system lays no file system over another"
  exit 0
}
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp" && chmod 1777 "$root/tmp"
mount -t tmpfs tmpfs "$root/run"
# What this machine has of night-audit is not that one's.
rm -rf "$root/etc/night-audit" "$root/var/lib/night-audit" "$root"/etc/cron.d/night-audit* "$root"/usr/local/bin/night-audit
dpkg-deb --fsys-tarfile "$repository"/.build/real-parts/cron/cron_*.deb |
  tar --extract --keep-directory-symlink --directory "$root"

inside() { chroot "$root" env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root "$@"; }
say() { printf '\n%s\n' "$1"; }
fail() {
  echo "host: $1" >&2
  exit 1
}

# block LANGUAGE PATTERN FILE: the block of a page in that language which has a line like the pattern.
block() {
  awk -v language="$1" -v pattern="$2" '
    $0 == "```" language { inside = 1; text = ""; next }
    $0 == "```" && inside { inside = 0; if (text ~ pattern) { printf "%s", text; exit } }
    inside { text = text $0 "\n" }' "$repository/$3"
}
say "README, Install"
block sh 'sudo make install' README.md >"$memory/install"
grep -q 'make install$' "$memory/install" || fail "the README does not install"
# The program as make install puts it, with the configuration's example and the crontab of that prefix.
make -s -C "$repository" install-files PROGRAM="$program" DESTDIR="$root" PREFIX=/usr/local
make -s -C "$repository" install-files PROGRAM="$program" DESTDIR="$root/tmp/other" PREFIX=/opt/night-audit
! grep -rIn '/usr/local/bin' "$root/tmp/other" || fail "another prefix than make install was given"
grep -v 'make install$' "$memory/install" | sed 's/^sudo //' | inside sh -e

say "A database of a shop with tables of its own"
inside install -d -o postgres /tmp/cluster /run/postgresql
bin=$(dirname "$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -n 1)")
as_postgres() { inside setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
as_postgres "$bin/initdb" --pgdata=/tmp/cluster/data --auth=trust --no-sync >/dev/null
as_postgres "$bin/pg_ctl" start --pgdata=/tmp/cluster/data --log=/tmp/cluster/log --wait --silent \
  --options="-c listen_addresses= -c fsync=off -c unix_socket_directories=/tmp,/run/postgresql" ||
  fail "$(cat "$root/tmp/cluster/log")"
trap 'as_postgres "$bin/pg_ctl" stop --pgdata=/tmp/cluster/data --mode=immediate --silent || true' EXIT
sql() { as_postgres psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --dbname="${database:-shop}" "$@"; }
as_postgres createdb shop
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

views=Sources/night-audit/Documentation.docc/Views.md

say "README, Point it at your own tables"
block sql 'VIEW sales.orders' README.md >"$root/tmp/orders.sql"
[ -s "$root/tmp/orders.sql" ] || fail "the README has no view of orders"
sql --file=/tmp/orders.sql
# Receipts and deliveries are on the page about views, which has orders as well.
block sql 'VIEW sales.orders' $views | sed 's/^CREATE SCHEMA sales;//; s/CREATE VIEW/CREATE OR REPLACE VIEW/' >"$root/tmp/views.sql"
sql --command='DROP VIEW sales.orders' --file=/tmp/views.sql

say "README, One role"
block sql 'CREATE ROLE night_audit' README.md >"$root/tmp/role.sql"
[ -s "$root/tmp/role.sql" ] || fail "the README has no role"
sql --file=/tmp/role.sql

say "README, Configuration"
block yaml 'sharedSecretFile' README.md |
  sed 's|^  url: .*|  url: host=/tmp user=night_audit dbname=shop|' >"$root/etc/night-audit/night-audit.yaml"
grep -q 'host=/tmp' "$root/etc/night-audit/night-audit.yaml" || fail "the README has no configuration"
inside install -o night-audit -m 0600 /dev/stdin /etc/night-audit/shared-secret <<<0123456789abcdef0123456789abcdef

say "README, First night"
# Line by line, as somebody types them.
while read -r line; do
  command=${line%%#*}
  case $command in
    '') continue ;;
    *'night-audit trust'*)
      # Apple can be reached, or the message names the way around; verifyReceipt can do without.
      # shellcheck disable=SC2086
      inside ${command#sudo } >"$memory/out" 2>&1 || grep -q -- 'https://www.apple.com' "$memory/out" || fail "$(cat "$memory/out")"
      continue
      ;;
  esac
  words=${command#sudo -u night-audit }
  [ "$words" != "$command" ] || fail "the README has a command that this test does not know: $command"
  status=0
  # shellcheck disable=SC2086
  inside setpriv --reuid=night-audit --regid=night-audit --clear-groups sh -c "cd / && exec $words" >"$memory/out" 2>&1 || status=$?
  echo "$command ends with $status"
  [ $status -eq 0 ] || { cat "$memory/out" >&2; fail "$command"; }
done < <(block sh 'night-audit init' README.md)
[ -L "$root/var/lib/night-audit/reports/latest" ] || fail "there is no report"
# There is no systemd here to enable a timer with; that the units can be loaded can be said without.
if command -v systemd-analyze >/dev/null; then
  install -m 0644 "$root"/usr/local/share/night-audit/*.service "$root"/usr/local/share/night-audit/*.timer "$root/etc/systemd/system/"
  inside systemd-analyze verify /etc/systemd/system/night-audit.timer /etc/systemd/system/night-audit-recheck.timer
fi

say "cron"
inside install -m 0755 /dev/stdin /usr/sbin/sendmail <<'MAIL'
#!/bin/sh
file=$(mktemp /tmp/mail.XXXXXX)
cat >"$file"
mv "$file" "$(echo "$file" | sed 's|/mail|/mailed|')"
MAIL
# As the package's own script does.
inside addgroup --system --quiet crontab
inside install -d -m 1730 -g crontab /var/spool/cron/crontabs
# Every minute instead of once a night; everything else is the file that is installed.
sed -e 's/^15 3 /* * /' -e '/recheck/d' "$root/usr/local/share/night-audit/night-audit.crontab" >"$root/etc/cron.d/night-audit"
chmod 0644 "$root/etc/cron.d/night-audit"
grep -q '^\* \* \* \* \* night-audit night-audit run --quiet$' "$root/etc/cron.d/night-audit" || fail "the crontab is another one"
inside sh -c 'night-audit doctor | grep -q "schedule (cron)"' || fail "the doctor does not see the cron entry"
runs() { sql --tuples-only --no-align --command="SELECT count(*) FROM night_audit.runs WHERE finished_at IS NOT NULL"; }
before=$(runs)
inside cron -f &
cron=$!
# wait_for COMMAND...: cron looks once a minute.
wait_for() {
  local end=$((SECONDS + 150))
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}
more_runs() { [ "$(runs)" -gt "$before" ]; }
mails() { compgen -G "$root/tmp/mailed*"; }
wait_for more_runs || fail "cron has started no night"
! mails || fail "a complete night was mailed: $(cat "$root"/tmp/mailed*)"
# Nothing can be read any more.
sql --command='ALTER VIEW sales.deliveries RENAME TO gone'
wait_for mails || fail "a night that failed was not mailed"
cat "$root"/tmp/mailed*
grep -q '^Subject: Cron <night-audit@[^>]*> night-audit run --quiet$' "$root"/tmp/mailed* || fail "the subject is another one"
grep -q 'sales.deliveries does not exist' "$root"/tmp/mailed* || fail "the mail does not say why"
kill $cron
rm "$root/usr/sbin/sendmail" && rm -f "$root/usr/lib/sendmail"
inside night-audit doctor >"$memory/out" || true
grep -q 'install an MTA' "$memory/out" || fail "the doctor does not say that nobody can send mail"
say "host: the README's commands and cron do what they say; violations: 0"
