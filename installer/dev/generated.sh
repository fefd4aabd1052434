#!/usr/bin/env bash
# Runs every generator and fails if the tree differs from its output.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$BASALT_BUILD/tools:$PATH"

files=$(git ls-files | xargs grep -lE '^(//|/\*|#|<!--) ?Code generated .* DO NOT EDIT' 2>/dev/null || true)
before=$(printf '%s\n' "$files" | xargs sha256sum)
go generate ./...
after=$(printf '%s\n' "$files" | xargs sha256sum)
if [ "$before" != "$after" ]; then
	echo "generated files are stale; commit the result of 'go generate ./...':" >&2
	diff <(printf '%s\n' "$before") <(printf '%s\n' "$after") | sed -n 's/^> [0-9a-f]*  /  /p' >&2
	exit 1
fi
