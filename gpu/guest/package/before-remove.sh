#!/bin/sh
# Runs before the package's files are removed. The argument is "remove" with dpkg and 0 with rpm; it
# differs if this is an upgrade.
set -e
case $1 in
remove | 0) exec /usr/lib/basalt/setup --remove ;;
esac
