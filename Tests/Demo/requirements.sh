#!/usr/bin/env bash
# Installs missing packages for a purpose with apt-get.
# usage: requirements.sh build|deb|demo|package|test|real-parts
set -euo pipefail

purpose=${1:?usage: requirements.sh build|deb|demo|package|test|real-parts}
missing=()

# need PACKAGE COMMAND...: the package is missing if the command fails.
need() {
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}

has_server() {
  [ -n "$(compgen -G '/usr/lib/postgresql/*/bin/initdb')" ] || command -v initdb
}

has_openpyxl() {
  /usr/bin/python3 -c 'import openpyxl' || python3 -c 'import openpyxl'
}

need make command -v make
need git command -v git
need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
need pkg-config command -v pkg-config
need libpq-dev pkg-config --exists libpq
need libxlsxwriter-dev pkg-config --exists xlsxwriter
need libminizip-dev pkg-config --exists minizip
need libexpat1-dev pkg-config --exists expat
need zlib1g-dev pkg-config --exists zlib
case $purpose in
  build) ;;
  demo)
    need postgresql has_server
    need postgresql-client command -v psql
    ;;
  deb)
    need binutils command -v strip
    need dpkg-dev command -v dpkg-shlibdeps
    need python3 test -x /usr/bin/python3
    need chrpath command -v chrpath
    ;;
  package)
    # A bare system for the package, a judge of packages, a builder of images.
    need lintian command -v lintian
    need debootstrap test -x /usr/sbin/debootstrap
    need buildah command -v buildah
    ;;
  test)
    need postgresql has_server
    need postgresql-client command -v psql
    need python3 test -x /usr/bin/python3
    need python3-openpyxl has_openpyxl
    need python3-venv /usr/bin/python3 -c 'import ensurepip'
    need curl command -v curl
    need openssl command -v openssl
    ;;
  real-parts)
    need prometheus command -v promtool
    need adduser command -v adduser
    need chromium command -v chromium
    need postgresql has_server
    need postgresql-client command -v psql
    need python3 test -x /usr/bin/python3
    need python3-openpyxl has_openpyxl
    need python3-venv /usr/bin/python3 -c 'import ensurepip'
    need curl command -v curl
    need openssl command -v openssl
    # A second reader of workbooks beside openpyxl, which calculates and prints them.
    need libreoffice-calc command -v soffice
    need build-essential command -v make cc
    need dpkg-dev command -v dpkg-source
    need openjdk-17-jre-headless command -v java
    need libpostgresql-jdbc-java test -e /usr/share/java/postgresql.jar
    ;;
  *)
    echo "unknown purpose: $purpose" >&2
    exit 64
    ;;
esac

install_missing() {
  [ ${#missing[@]} -eq 0 ] && return
  echo "Missing: ${missing[*]}"
  if ! command -v apt-get >/dev/null; then
    echo "There is no apt-get here. Install the equivalents of these Debian packages, then run this again." >&2
    exit 69
  fi
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "Ask an administrator for: apt-get install ${missing[*]}" >&2
      exit 77
    fi
    as_root=(sudo)
  fi
  # Continues, because the package lists may suffice while a mirror is down.
  "${as_root[@]}" apt-get update --quiet --quiet || echo "apt-get update failed; trying with the lists that are here." >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install --quiet --quiet --yes --no-install-recommends "${missing[@]}"
}

# Independent judges of output: a mail server, an SFTP server, a validator of data packages.
install_test_tools() {
  local root tools
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
  tools=$root/.build/test-tools
  cmp --quiet "$root/Tests/requirements.txt" "$tools/installed.txt" && return
  if /usr/bin/python3 -m venv "$tools" && "$tools/bin/pip" install --quiet --requirement "$root/Tests/requirements.txt"
  then
    cp "$root/Tests/requirements.txt" "$tools/installed.txt"
  elif [ -n "${CI:-}" ]; then
    echo "PyPI was not to be had, and CI leaves no test out: those that need Tests/requirements.txt cannot run." >&2
    exit 69
  else
    echo "PyPI was not to be had: the tests that need Tests/requirements.txt are left out." >&2
  fi
}

# Spark takes 300 MB and is needed by one test.
install_spark() {
  local tools
  tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/.build/spark
  "$tools/bin/python" -c 'import pyspark; assert pyspark.__version__ == "3.5.9"' 2>/dev/null && return
  if /usr/bin/python3 -m venv "$tools" && "$tools/bin/pip" install --quiet pyspark==3.5.9; then return; fi
  [ -z "${CI:-}" ] || exit 69
  rm -rf "$tools"
  echo "PyPI was not to be had: the night over a Spark cluster is left out." >&2
}

install_missing
case $purpose in real-parts) install_spark ;; esac
case $purpose in test | real-parts) install_test_tools ;; esac
