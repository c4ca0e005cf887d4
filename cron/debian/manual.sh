#!/usr/bin/env bash
# Man pages from the program's own help, one for each command.
# usage: cron/debian/manual.sh PROGRAM DIRECTORY
set -euo pipefail

program=${1:?usage: manual.sh PROGRAM DIRECTORY}
directory=${2:?usage: manual.sh PROGRAM DIRECTORY}
mkdir -p "$directory"
version=$("$program" --version)

# page COMMAND...: its page, and those of its subcommands.
page() {
  local name=night-audit help summary subcommand
  [ $# -eq 0 ] || name=night-audit-$(IFS=-; echo "$*")
  help=$("$program" help "$@" || "$program" "$@" --help)
  summary=$(sed -n 's/^OVERVIEW: //p' <<<"$help" | head -n 1)
  help2man --no-info --section=1 --manual='night-audit' --source="night-audit $version" \
    --name="${summary:-App Store night audit}" --version-string="night-audit $version" \
    --help-option="$* --help" --no-discard-stderr --output="$directory/$name.1" "$program" 2>/dev/null
  sed -i "s|$program|night-audit|g; s|^\\.TH .* \"1\"|.TH ${name^^} \"1\"|" "$directory/$name.1"
  gzip -9nf "$directory/$name.1"
  chmod 0644 "$directory/$name.1.gz"
  # Subcommands stand below their heading, two blanks in.
  while read -r subcommand; do
    [ -z "$subcommand" ] || page "$@" "$subcommand"
  done < <(sed -n '/^SUBCOMMANDS:/,/^$/s/^  \([a-z][a-z-]*\).*/\1/p' <<<"$help")
}
page
