#!/usr/bin/env bash
# Builds the Debian package of a release build: the stripped program, man pages, completions, units, examples.
# usage: cron/debian/build.sh PROGRAM DIRECTORY
set -euo pipefail

program=$(realpath "${1:?usage: build.sh PROGRAM DIRECTORY}")
mkdir -p "${2:?usage: build.sh PROGRAM DIRECTORY}"
output=$(realpath "$2")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
version=$("$program" --version)
architecture=$(dpkg --print-architecture)
# All files are dated by the last commit, so that the same source gives the same bytes.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 0)}
export LC_ALL=C.UTF-8
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
documents=$tree/usr/share/doc/night-audit

install -D -m 0755 "$program" "$tree/usr/bin/night-audit"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$tree/usr/bin/night-audit"
# Removes the path of the build machine's Swift, because the runtime is linked statically.
chrpath --delete "$tree/usr/bin/night-audit" >/dev/null 2>&1 || true

# Changes the prefix to /usr in every file that names the program.
for unit in "$root"/cron/*.service "$root"/cron/*.timer; do
  install -D -m 0644 /dev/stdin "$tree/lib/systemd/system/$(basename "$unit")" \
    < <(sed 's|/usr/local/bin|/usr/bin|g' "$unit")
done
for example in night-audit.crontab night-audit.environment; do
  install -D -m 0644 /dev/stdin "$documents/examples/$example" < <(sed 's|/usr/local/bin|/usr/bin|g' "$root/cron/$example")
done
for example in night-audit-alerts.yaml night-audit-dashboard.json bi-queries.sql; do
  install -D -m 0644 "$root/cron/$example" "$documents/examples/$example"
done
for schema in "$root"/Sources/night-audit/Documentation.docc/Schemas/*.json; do
  install -D -m 0644 "$schema" "$tree/usr/share/night-audit/schemas/$(basename "$schema")"
done
install -D -m 0755 "$root/cron/night-audit-chat" "$tree/usr/lib/night-audit/night-audit-chat"
install -D -m 0640 "$root/cron/night-audit.yaml" "$tree/etc/night-audit/night-audit.yaml"

"$root/cron/debian/manual.py" "$program" "$tree/usr/share/man" \
  "$root/Sources/night-audit/Documentation.docc/Configuration.md"
install -D -m 0644 /dev/stdin "$tree/usr/share/bash-completion/completions/night-audit" \
  < <("$program" --generate-completion-script bash | sed '1{/^#!/d}')
install -D -m 0644 /dev/stdin "$tree/usr/share/zsh/vendor-completions/_night-audit" \
  < <("$program" --generate-completion-script zsh)
install -D -m 0644 /dev/stdin "$tree/usr/share/fish/vendor_completions.d/night-audit.fish" \
  < <("$program" --generate-completion-script fish)

"$root/cron/documents.sh" "$documents"
rm "$documents/LICENSE"
install -D -m 0644 "$root/cron/debian/copyright" "$documents/copyright"
sed "s/{version}/$version/" "$root/cron/debian/changelog" | gzip -9n >"$documents/changelog.gz"
chmod 0644 "$documents/changelog.gz"

install -D -m 0644 "$root/cron/debian/lintian-overrides" "$tree/usr/share/lintian/overrides/night-audit"

mkdir -p "$tree/DEBIAN"
echo /etc/night-audit/night-audit.yaml >"$tree/DEBIAN/conffiles"
for script in postinst prerm postrm; do install -m 0755 "$root/cron/debian/$script" "$tree/DEBIAN/$script"; done

# The package depends on the libraries that the program is linked with.
mkdir -p "$work/debian"
printf 'Source: night-audit\n\nPackage: night-audit\nArchitecture: any\nDepends: ${shlibs:Depends}\n' >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O "$tree/usr/bin/night-audit" 2>/dev/null | sed 's/^shlibs:Depends=//')
size=$(du -sk --apparent-size "$tree" --exclude=DEBIAN | cut -f1)
sed -e "s/{version}/$version/" -e "s/{architecture}/$architecture/" -e "s/{size}/$size/" -e "s/{libraries}/$libraries/" \
  "$root/cron/debian/control" >"$tree/DEBIAN/control"
(cd "$tree" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"

find "$tree" -print0 | xargs -0 touch --no-dereference --date="@$SOURCE_DATE_EPOCH"
package=$output/night-audit_${version}_${architecture}.deb
dpkg-deb --root-owner-group --build "$tree" "$package" >/dev/null
echo "$package"
