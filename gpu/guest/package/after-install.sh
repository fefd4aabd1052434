#!/bin/sh
# Of the package, after its files came: dpkg says "configure", rpm how many versions there
# are.
set -e
case $1 in
configure | [0-9]*) exec /usr/lib/basalt/setup ;;
esac
