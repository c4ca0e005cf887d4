#!/usr/bin/env bash
# Runs every command of the README in a private file system, then Debian's cron with a captured mail.
# usage: host.sh PROGRAM
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=$(realpath "${1:?usage: host.sh PROGRAM}")

if [ "${2:-}" != inside ]; then
  [ "$(id -u)" -eq 0 ] && unshare --mount --pid --fork true 2>/dev/null || {
    echo "host: skipped, because a private file system requires root and the right to mount"
    exit 0
  }
  # Debian's cron is unpacked, but not installed on this machine.
  mkdir -p "$repository/.build/real-parts/cron"
  (cd "$repository/.build/real-parts/cron" && { ls cron_*.deb >/dev/null 2>&1 || apt-get download --quiet --quiet -o APT::Sandbox::User=root cron; })
  # The mount of /proc is private, because libdispatch ends a program whose threads it does not find there.
  exec unshare --mount --pid --fork --mount-proc --kill-child "$0" "$program" inside
fi

memory=$(mktemp -d)
mount -t tmpfs tmpfs "$memory"
mkdir "$memory/upper" "$memory/work" "$memory/root"
root=$memory/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$memory/upper,workdir=$memory/work" "$root" || {
  echo "host: skipped, because this system has no overlay file system"
  exit 0
}
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp" && chmod 1777 "$root/tmp"
mount -t tmpfs tmpfs "$root/run"
# Removes this machine's installation of night-audit from the private file system.
rm -rf "$root/etc/night-audit" "$root/var/lib/night-audit" "$root"/etc/cron.d/night-audit* "$root"/usr/local/bin/night-audit
dpkg-deb --fsys-tarfile "$repository"/.build/real-parts/cron/cron_*.deb |
  tar --extract --keep-directory-symlink --directory "$root"

inside() { chroot "$root" env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root "$@"; }
say() { printf '\n%s\n' "$1"; }
fail() {
  echo "host: $1" >&2
  exit 1
}

. "$repository/Tests/RealParts/readme.sh"
say "README, Install"
block sh 'sudo make install' README.md >"$memory/install"
grep -q 'make install$' "$memory/install" || fail "the README lacks make install"
make -s -C "$repository" install-files PROGRAM="$program" DESTDIR="$root" PREFIX=/usr/local
make -s -C "$repository" install-files PROGRAM="$program" DESTDIR="$root/tmp/other" PREFIX=/opt/night-audit
! grep -rIn '/usr/local/bin' "$root/tmp/other" || fail "files have another prefix than the one given to make install"
grep -v 'make install$' "$memory/install" | sed 's/^sudo //' | inside sh -e

scratch=$memory
trap stop_server EXIT
first_night
# Without systemd the timer cannot be enabled, but the units can be verified.
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
inside addgroup --system --quiet crontab
inside install -d -m 1730 -g crontab /var/spool/cron/crontabs
# The installed crontab, but every minute in place of once a night.
sed -e 's/^15 3 /* * /' -e '/recheck/d' "$root/usr/local/share/night-audit/night-audit.crontab" >"$root/etc/cron.d/night-audit"
chmod 0644 "$root/etc/cron.d/night-audit"
grep -q '^\* \* \* \* \* night-audit night-audit run --quiet$' "$root/etc/cron.d/night-audit" || fail "the crontab differs from the expected one"
inside sh -c 'night-audit doctor | grep -q "schedule (cron)"' || fail "the doctor does not see the cron entry"
runs() { sql --tuples-only --no-align --command="SELECT count(*) FROM night_audit.runs WHERE finished_at IS NOT NULL"; }
before=$(runs)
inside cron -f &
cron=$!
# wait_for COMMAND...: waits longer than a minute, because cron runs once a minute.
wait_for() {
  local end=$((SECONDS + 150))
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}
more_runs() { [ "$(runs)" -gt "$before" ]; }
mails() { compgen -G "$root/tmp/mailed*"; }
wait_for more_runs || fail "cron has not started a night"
! mails || fail "a complete night was mailed: $(cat "$root"/tmp/mailed*)"
sql --command='ALTER VIEW sales.deliveries RENAME TO gone'
wait_for mails || fail "a failed night was not mailed"
cat "$root"/tmp/mailed*
grep -q '^Subject: Cron <night-audit@[^>]*> night-audit run --quiet$' "$root"/tmp/mailed* || fail "the subject differs from the expected one"
grep -q 'sales.deliveries does not exist' "$root"/tmp/mailed* || fail "the mail lacks the reason"
kill $cron
rm "$root/usr/sbin/sendmail" && rm -f "$root/usr/lib/sendmail"
inside night-audit doctor >"$memory/out" || true
grep -q 'install an MTA' "$memory/out" || fail "the doctor does not report the missing MTA"
say "host: the README's commands and cron work; violations: 0"
