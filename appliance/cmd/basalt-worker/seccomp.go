package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// allowed is the filter of system calls (seccomp(2)): calls that are not listed fail with
// ENOSYS, so that libraries fall back to an older way. It lists what Go's runtime, the C
// library and the host's libcuda need to open GPUs, map memory, run threads, and communicate
// with the guest, gpud and NVIDIA's daemons by unix sockets. Most importantly it does not list:
// executing, other processes (fork, ptrace, kill), mounting and namespaces, io_uring, bpf,
// performance events, userfaultfd, keys, modules. Access to files is restricted by Landlock.
var allowed = []uintptr{
	// Calls of the fast path come first, because the kernel evaluates the list in order.
	unix.SYS_FUTEX, unix.SYS_IOCTL, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
	unix.SYS_EPOLL_PWAIT, unix.SYS_RECVMSG, unix.SYS_SENDMSG, unix.SYS_SCHED_YIELD, unix.SYS_MADVISE,
	unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGPROCMASK, unix.SYS_CLOCK_GETTIME, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_PPOLL,
	// Memory.
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_BRK, unix.SYS_MLOCK, unix.SYS_MLOCK2,
	unix.SYS_MUNLOCK, unix.SYS_MINCORE, unix.SYS_MSYNC, unix.SYS_MEMBARRIER, unix.SYS_MEMFD_CREATE, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE,
	unix.SYS_MBIND, unix.SYS_GET_MEMPOLICY, unix.SYS_SET_MEMPOLICY, unix.SYS_MOVE_PAGES,
	// Files and descriptors.
	unix.SYS_OPENAT, unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREADV, unix.SYS_PWRITEV,
	unix.SYS_LSEEK, unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2,
	unix.SYS_READLINKAT, unix.SYS_GETDENTS64, unix.SYS_GETCWD, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_FCNTL, unix.SYS_FLOCK,
	unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_UMASK, unix.SYS_PIPE2, unix.SYS_EVENTFD2, unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME,
	unix.SYS_TIMERFD_GETTIME, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_PSELECT6,
	// Sockets; guarded restricts the families.
	unix.SYS_CONNECT, unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SHUTDOWN, unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT,
	unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT4,
	// Threads, signals, time.
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_SET_ROBUST_LIST, unix.SYS_GET_ROBUST_LIST, unix.SYS_SET_TID_ADDRESS, unix.SYS_RSEQ,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_RT_SIGSUSPEND, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_GETSCHEDULER,
	unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_GET_PRIORITY_MAX, unix.SYS_SCHED_GET_PRIORITY_MIN, unix.SYS_GETPRIORITY, unix.SYS_SETPRIORITY,
	unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY, unix.SYS_TIMES, unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE,
	unix.SYS_SETITIMER, unix.SYS_GETCPU,
	// Information about the system and the process.
	unix.SYS_GETPPID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETRESUID, unix.SYS_GETRESGID, unix.SYS_GETGROUPS,
	unix.SYS_GETPGID, unix.SYS_GETSID, unix.SYS_CAPGET, unix.SYS_PRCTL, unix.SYS_PRLIMIT64, unix.SYS_GETRUSAGE, unix.SYS_SYSINFO, unix.SYS_UNAME, unix.SYS_GETRANDOM,
}

// guarded returns the calls that are allowed depending on an argument. self is the process that
// the filter is for.
func guarded(self uint32) []guard {
	return []guard{
		{unix.SYS_TGKILL, 0, ^uint32(0), self},                    // Go's runtime interrupts its own threads
		{unix.SYS_CLONE, 0, unix.CLONE_THREAD, unix.CLONE_THREAD}, // threads, no processes; clone3 hides its flags and is not allowed
		{unix.SYS_SOCKET, 0, ^uint32(0), unix.AF_UNIX},
		{unix.SYS_SOCKETPAIR, 0, ^uint32(0), unix.AF_UNIX},
	}
}

// guard allows a call if the low half of an argument, under the mask, equals the value.
type guard struct {
	call        uintptr
	argument    uint32
	mask, value uint32
}

// Offsets in struct seccomp_data.
const (
	dataNumber   = 0
	dataArch     = 4
	dataArgument = 16
)

func statement(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

// unless returns a jump over skip instructions if the accumulator is not k.
func unless(k uint32, skip int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: uint8(skip), K: k}
}

func returns(action uint32) unix.SockFilter { return statement(unix.BPF_RET|unix.BPF_K, action) }

// filter returns the program (classic BPF) that the kernel runs at each system call of the
// process self.
func filter(self uint32) []unix.SockFilter {
	const load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	p := []unix.SockFilter{
		statement(load, dataArch),
		unless(auditArch, 1),
		{Code: unix.BPF_JMP | unix.BPF_JA, K: 1},
		returns(unix.SECCOMP_RET_KILL_PROCESS), // call numbers differ in other architectures
		statement(load, dataNumber),
	}
	for _, call := range append(allowed, allowedHere...) {
		p = append(p, unless(uint32(call), 1), returns(unix.SECCOMP_RET_ALLOW))
	}
	for _, g := range guarded(self) {
		p = append(p, unless(uint32(g.call), 5),
			statement(load, dataArgument+8*g.argument),
			statement(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, g.mask),
			unless(g.value, 1),
			returns(unix.SECCOMP_RET_ALLOW),
			returns(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)))
	}
	return append(p, returns(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)))
}

// restrict installs the filter permanently for all threads of this process. A kernel without
// filters restricts nothing.
func restrict() error {
	err := install(filter(uint32(os.Getpid())))
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		fmt.Fprintln(os.Stderr, "basalt-worker: this kernel has no filter of system calls:", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("install system call filter: %w", err)
	}
	return nil
}
