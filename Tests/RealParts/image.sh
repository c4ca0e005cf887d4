#!/usr/bin/env bash
# Builds and runs cron/Dockerfile without a daemon: buildah in a chroot, on a base image by debootstrap.
# usage: image.sh PACKAGE.deb
set -euo pipefail

package=$(realpath "${1:?usage: image.sh PACKAGE.deb}")
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[ "$(id -u)" -eq 0 ] || { echo "Building the image requires root." >&2; exit 77; }

work=$(mktemp -d)
export TMPDIR=$work
trap 'rm -rf "$work"' EXIT
say() { printf '\n%s\n' "$1"; }
fail() { echo "image: $1" >&2; exit 1; }
builder() { buildah --root "$work/images" --runroot "$work/run" --storage-driver vfs "$@"; }

say "A base of the name that the Dockerfile asks for"
debootstrap --variant=minbase bookworm "$work/base" >"$work/debootstrap.log" 2>&1 || { tail -n 20 "$work/debootstrap.log"; exit 1; }
base=$(builder from scratch)
builder add --quiet "$base" "$work/base" / >/dev/null
builder commit --quiet "$base" docker.io/library/debian:12-slim >/dev/null
builder rm "$base" >/dev/null

say "The image"
mkdir "$work/context"
cp "$package" "$work/context/"
builder build --isolation chroot --pull-never --quiet --file "$repository/cron/Dockerfile" --tag night-audit "$work/context" \
  >"$work/build.log" 2>&1 || fail "$(tail -n 20 "$work/build.log")"

say "The program in it"
container=$(builder from --pull-never localhost/night-audit)
[ "$(builder inspect --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}' "$container")" = \
  'night-audit [/usr/bin/night-audit] [run]' ] || fail "user or command differ from the Dockerfile's"
inside() { builder run --isolation chroot "$container" -- "$@"; }
version=$(inside /usr/bin/night-audit --version) || fail "the program does not start"
dpkg-deb --field "$package" Version | grep --quiet --fixed-strings "$version" || fail "version $version differs from the package's"
[ "$(inside id --user --name)" = night-audit ] || fail "the container does not run as night-audit"
inside sh -c 'touch /var/lib/night-audit/x && rm /var/lib/night-audit/x' || fail "the folder of the user cannot be written"
inside test -r /etc/night-audit/night-audit.yaml || fail "the configuration cannot be read"
status=0
inside /usr/bin/night-audit doctor --json >"$work/doctor" 2>"$work/errors" || status=$?
[ $status -eq 69 ] || [ $status -eq 78 ] || fail "the doctor exits with $status without a database: $(cat "$work/errors")"
python3 -m json.tool "$work/doctor" >/dev/null || fail "the doctor's output is not JSON"
say "image: built and run as the user night-audit; violations: 0"
