package main

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// allowedHere lists calls that only this architecture has.
var allowedHere = []uintptr{unix.SYS_FSTATAT, unix.SYS_SETRLIMIT, unix.SYS_GETRLIMIT}
