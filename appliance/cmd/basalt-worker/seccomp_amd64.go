package main

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// allowedHere lists calls that only this architecture has; the C library still uses some of
// them.
var allowedHere = []uintptr{
	unix.SYS_ARCH_PRCTL, unix.SYS_OPEN, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_NEWFSTATAT, unix.SYS_ACCESS, unix.SYS_READLINK,
	unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_PIPE, unix.SYS_DUP2, unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_CREATE, unix.SYS_EVENTFD, unix.SYS_ACCEPT,
	unix.SYS_MKDIR, unix.SYS_UNLINK, unix.SYS_GETRLIMIT, unix.SYS_SETRLIMIT, unix.SYS_TIME, unix.SYS_ALARM, unix.SYS_GETPGRP,
}
