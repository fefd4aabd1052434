#!/bin/sh
# Runs after the package's files are removed.
set -e
case $1 in
remove | 0)
	ldconfig
	if command -v udevadm >/dev/null && [ -S /run/udev/control ]; then udevadm control --reload || true; fi
	;;
esac
