#!/usr/bin/env bash
# Tests Spreadsheet with the newest libxlsxwriter, linked plainly and as in Ubuntu (-Bsymbolic-functions).
# Tests the installed library in release mode, too. The source is LIBXLSXWRITER_SOURCE (a .tar.gz), or Debian's stable
# source package, or that of the release before.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
work=$root/.build/real-parts/libxlsxwriter
mkdir -p "$work"
export ONLY=Spreadsheet SWIFT_BACKTRACE=enable=no

fetch() {
  if [ -n "${LIBXLSXWRITER_SOURCE:-}" ]; then
    cp "$LIBXLSXWRITER_SOURCE" "$work/source.tar.gz"
    return
  fi
  local suite
  for suite in trixie bookworm; do
    if fetch_from "$suite"; then
      echo "libxlsxwriter of Debian's $suite"
      return
    fi
    echo "The mirror has no source of libxlsxwriter for $suite; LIBXLSXWRITER_SOURCE names an archive instead." >&2
  done
  return 1
}

# A private apt configuration, so that this machine does not change.
fetch_from() {
  local apt=$work/apt-$1
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  echo "deb-src http://deb.debian.org/debian $1 main" >"$apt/sources.list"
  local options=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$apt/lists"
    -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update --quiet --quiet && (
    cd "$apt" && apt-get "${options[@]}" source --quiet --quiet --download-only libxlsxwriter 2>/dev/null
  ) && mv "$apt"/libxlsxwriter_*.orig.tar.gz "$work/source.tar.gz"
}

# build NAME [VARIABLE=VALUE...]: builds the library into $work/NAME.
build() {
  local name=$1 source=$work/source-$1
  shift
  rm -rf "$source" "${work:?}/$name"
  mkdir -p "$source" "$work/$name/lib/pkgconfig"
  tar -xzf "$work/source.tar.gz" -C "$source" --strip-components=1
  # An archive of a checkout lacks the empty folder that the makefile needs.
  mkdir -p "$source/lib"
  env "$@" make -C "$source" USE_SYSTEM_MINIZIP=1 >"$work/$name.log" 2>&1 || { tail -30 "$work/$name.log"; return 1; }
  cp -r "$source/include" "$work/$name/"
  cp -a "$source"/lib/* "$work/$name/lib/"
  # The linker uses the first directory that has the library, so ours comes before the system's.
  local package
  for package in libpq expat minizip; do
    sed "s|^Libs:|Libs: -L$work/$name/lib|" "$(pkg-config --variable=pcfiledir $package)/$package.pc" \
      >"$work/$name/lib/pkgconfig/$package.pc"
  done
  printf 'Name: xlsxwriter\nDescription: under test\nVersion: 0\nLibs: -L%s -lxlsxwriter\nCflags: -I%s\n' \
    "$work/$name/lib" "$work/$name/include" >"$work/$name/lib/pkgconfig/xlsxwriter.pc"
}

# judge NAME: runs the module's tests with the library in $work/NAME. One build serves both, because they have one interface.
judge() {
  local scratch=$root/.build/real-parts/spreadsheet
  export PKG_CONFIG_PATH=$work/newest/lib/pkgconfig LD_LIBRARY_PATH=$work/$1/lib
  swift build --build-tests --scratch-path "$scratch" --quiet
  ldd "$scratch"/debug/*.xctest | grep "$work/$1/lib/libxlsxwriter" || {
    echo "the tests are not linked with the libxlsxwriter in $work/$1" >&2
    return 1
  }
  swift test --skip-build --no-parallel --scratch-path "$scratch"
  unset PKG_CONFIG_PATH LD_LIBRARY_PATH
}

fetch
build newest
judge newest
build symbolic LDFLAGS=-Wl,-Bsymbolic-functions
judge symbolic

echo "The installed libxlsxwriter $(pkg-config --modversion xlsxwriter), in release mode:"
swift build --build-tests -c release -Xswiftc -enable-testing --scratch-path "$root/.build/real-parts/spreadsheet-release" --quiet
swift test --skip-build --no-parallel -c release --scratch-path "$root/.build/real-parts/spreadsheet-release"
