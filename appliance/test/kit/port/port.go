// Package port gives tests TCP and UDP ports for programs that listen on a port
// which they are told, and again after they were killed.
//
// The kernel hands out the ports of its ephemeral range to whoever connects, also
// those that a test has looked for and not bound yet. So these lie below it, and a
// locked file keeps them for one process of the machine.
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
	first = 12_000 // below are the well-known ones, and those of Ceph and OVN
	tries = 1_000
)

// Free is a port of all addresses that is the test's until it ends.
func Free(t testing.TB) uint16 {
	t.Helper()
	p, release, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return p
}

// Address is a Free port of 127.0.0.1, as HOST:PORT.
func Address(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", Free(t))
}

// Take a port that is the caller's until release, or until its process ends.
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

// ephemeral is the first port that the kernel gives away.
func ephemeral() (int, error) {
	raw, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0, err
	}
	low, err := strconv.Atoi(strings.Fields(string(raw) + " 0")[0])
	if err != nil || low < first+tries {
		return 0, fmt.Errorf("ip_local_port_range is %q: no room for ports from %d on below it", raw, first)
	}
	return low, nil
}

// lock answers how to let go; nil: another process, or another test, has it. The
// file stays: one that is made anew beside a locked one would be a second lock.
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

// unused looks whether nobody has the port who does not ask here.
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
