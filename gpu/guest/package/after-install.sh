#!/bin/sh
# Runs after the package's files are installed. The argument is "configure" with dpkg, and the number
# of installed versions with rpm.
set -e
case $1 in
configure | [0-9]*) exec /usr/lib/basalt/setup ;;
esac
