// Package port reserves TCP and UDP ports for programs of tests that listen on a given port,
// and again after they were killed.
//
// The kernel assigns the ports of its ephemeral range to outgoing connections, including those
// that a test has found free and not bound yet. Reserved ports are therefore below that range,
// and a locked file reserves each for one process of the machine.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const (
	first = 12_000 // the well-known ports and those of Ceph and OVN are below it
	tries = 1_000
)

// Free returns a port, on all addresses, that is reserved until the test ends.
func Free(t testing.TB) uint16 {
	t.Helper()
	p, release, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return p
}

// Address returns a Free port of 127.0.0.1, as HOST:PORT.
func Address(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", Free(t))
}

// Take reserves a port until release is called or the process ends.
func Take() (port uint16, release func(), err error) {
	end, err := ephemeral()
	if err != nil {
		return 0, nil, err
	}
	dir := filepath.Join(os.TempDir(), "basalt-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, nil, fmt.Errorf("reserve a port: %w", err)
	}
	for range tries {
		p := first + rand.IntN(end-first)
		if release = lock(filepath.Join(dir, strconv.Itoa(p))); release == nil {
			continue
		}
		if unused(p) {
			return uint16(p), release, nil
		}
		release()
	}
	return 0, nil, fmt.Errorf("reserve a port: none of %d tried from %d to %d is free", tries, first, end)
}

// ephemeral returns the first port of the kernel's ephemeral range.
func ephemeral() (int, error) {
	raw, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0, err
	}
	low, err := strconv.Atoi(strings.Fields(string(raw) + " 0")[0])
	if err != nil || low < first+tries {
		return 0, fmt.Errorf("ip_local_port_range is %q: want a range that starts at %d or above", raw, first+tries)
	}
	return low, nil
}

// lock returns a function that releases the lock, or nil if another process or test holds it.
// The file is never removed: a new file in place of a locked one would be a second lock.
func lock(path string) (release func()) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = f.Close()
		return nil
	}
	return func() { _ = f.Close() }
}

// unused reports whether no program listens on the port, including programs that do not use
// this package.
func unused(port int) bool {
	at := ":" + strconv.Itoa(port)
	l, err := net.Listen("tcp", at)
	if err != nil {
		return false
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", at)
	if err != nil {
		return false
	}
	return u.Close() == nil
}
