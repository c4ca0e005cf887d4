#!/usr/bin/env bash
# Installs the Debian package on a bare system, runs the README's commands, upgrades, removes and purges it.
# usage: package.sh PACKAGE.deb
set -euo pipefail

package=$(realpath "${1:?usage: package.sh PACKAGE.deb}")
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
root=$repository/.build/real-parts/bare-root
[ "$(id -u)" -eq 0 ] || { echo "Creating a bare system requires root." >&2; exit 77; }

say() { printf '\n%s\n' "$1"; }
fail() { echo "package: $1" >&2; exit 1; }
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }

. "$repository/Tests/RealParts/readme.sh"

say "lintian"
lintian --fail-on error "$package"

say "A bare Debian 12"
rm -rf "$root"
mkdir -p "$(dirname "$root")"
debootstrap --variant=minbase bookworm "$root" >"$root.log" 2>&1 || { tail -n 20 "$root.log"; exit 1; }
# Swift programs read their arguments from /proc.
mount -t proc proc "$root/proc"
scratch=$(mktemp -d)
trap 'stop_server; umount "$root/proc"; rm -rf "$root" "$scratch"' EXIT
# Prevents services from starting during installation.
install -m 0755 /dev/stdin "$root/usr/sbin/policy-rc.d" <<<$'#!/bin/sh\nexit 101'
cp "$package" "$root/night-audit.deb"

say "Install"
inside apt-get install --quiet --quiet --yes --no-install-recommends /night-audit.deb
inside night-audit --version
inside night-audit help run >/dev/null
[ -s "$root/usr/share/doc/night-audit/Sources/night-audit/Documentation.docc/Operations.md" ] || fail "no documentation"
inside getent passwd night-audit
[ "$(inside stat -c '%U:%G %a' /var/lib/night-audit)" = "night-audit:night-audit 750" ] || fail "wrong rights of /var/lib/night-audit"
[ "$(inside stat -c '%U:%G %a' /etc/night-audit/night-audit.yaml)" = "root:night-audit 640" ] || fail "wrong rights of the configuration"
inside sh -c '! grep -rl /usr/local /lib/systemd/system/night-audit* /usr/share/doc/night-audit/examples' || fail "files have another prefix than the package's"
# An exported function with the name of a libc function would replace it in every library.
symbols() { nm --dynamic --defined-only "$1" | awk '$2 == "T" || $2 == "W" || $2 == "i" { sub(/@.*/, "", $3); print $3 }' | sort -u; }
replaced=$(comm -12 <(symbols "$root/usr/bin/night-audit") <(symbols "$root"/lib/*/libc.so.6))
[ -z "$replaced" ] || fail "the program replaces functions of libc: $replaced"
inside night-audit doctor --json >"$root.doctor" && fail "the doctor accepts a missing database"
python3 -m json.tool "$root.doctor" >/dev/null || fail "the doctor's output is not JSON"

say "A server beside it, which the package needs elsewhere"
inside apt-get install --quiet --quiet --yes --no-install-recommends postgresql >"$root.log" 2>&1 || fail "$(tail -n 20 "$root.log")"
first_night
reports=$(ls "$root/var/lib/night-audit/reports")

say "Upgrade, with state"
echo "# kept" >>"$root/etc/night-audit/night-audit.yaml"
inside dpkg --install --force-confold /night-audit.deb >/dev/null
tail -n 1 "$root/etc/night-audit/night-audit.yaml" | grep --quiet '# kept' || fail "the upgrade changed the configuration"
[ "$(ls "$root/var/lib/night-audit/reports")" = "$reports" ] || fail "the upgrade changed the reports"
inside setpriv --reuid=night-audit --regid=night-audit --clear-groups night-audit verify /var/lib/night-audit/reports/latest \
  >"$scratch/out" || fail "the earlier report does not verify: $(cat "$scratch/out")"

say "Remove, then purge"
mkdir -p "$root/etc/night-audit/apple-roots"
echo foreign >"$root/etc/night-audit/apple-roots/ours.cer"
inside apt-get remove --quiet --quiet --yes night-audit >/dev/null
[ ! -e "$root/usr/bin/night-audit" ] || fail "the program is left after removal"
[ -e "$root/etc/night-audit/night-audit.yaml" ] || fail "removal deleted the configuration"
inside apt-get purge --quiet --quiet --yes night-audit >"$scratch/out"
[ -s "$root/etc/night-audit/shared-secret" ] || fail "purging deleted the shop's secret"
[ -s "$root/etc/night-audit/apple-roots/ours.cer" ] || fail "purging deleted a certificate that the package did not write"
[ -d "$root/var/lib/night-audit/reports" ] || fail "purging deleted the reports"
grep --quiet '/etc/night-audit/shared-secret' "$scratch/out" || fail "purging does not list the files that are left"
[ ! -e "$root/etc/night-audit/night-audit.yaml" ] || fail "the configuration is left after purging"

say "Install where the configuration was removed, then purge with nothing left"
inside apt-get install --quiet --quiet --yes --no-install-recommends /night-audit.deb >/dev/null
rm "$root/etc/night-audit/night-audit.yaml"
inside dpkg --install --force-confold /night-audit.deb >/dev/null || fail "the upgrade failed without the configuration"
rm -rf "$root/var/lib/night-audit/reports" "$root/etc/night-audit/shared-secret" "$root/etc/night-audit/apple-roots"
inside apt-get purge --quiet --quiet --yes night-audit >/dev/null
[ ! -e "$root/etc/night-audit" ] && [ ! -e "$root/var/lib/night-audit" ] || fail "files are left after purging"
if inside getent passwd night-audit; then fail "the user is left after purging"; fi
echo "package: installed, upgraded, removed and purged; violations: 0"
