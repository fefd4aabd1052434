#!/bin/sh
# Of the package, before its files go: "remove" of dpkg, 0 of rpm, and not before an
# upgrade.
set -e
case $1 in
remove | 0) exec /usr/lib/basalt/setup --remove ;;
esac
