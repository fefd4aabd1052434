#!/bin/sh
# The hash of files and trees of this repository, given by their paths in it, and
# of the Node.js that works on them: what is made of the same is not made again
# (installer/dev/cache.sh). What is generated among them does not count.
set -eu
cd "$(dirname "$0")/../.."
{
	node --version
	find "$@" -type f ! -name schema.d.ts -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
} | sha256sum | cut -d' ' -f1
