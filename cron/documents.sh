#!/usr/bin/env bash
# Installs the documentation and the sample report, in the folders that their links expect.
# usage: cron/documents.sh DIRECTORY
set -euo pipefail

directory=${1:?usage: documents.sh DIRECTORY}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for file in README.md LICENSE Sources/README.md Sources/night-audit/Documentation.docc/*.md .github/*.md \
  Sources/night-audit/Documentation.docc/Schemas/*.json reports/README.md reports/summary.png reports/2026-11-19/*; do
  install -D -m 0644 "$file" "$directory/$file"
done
