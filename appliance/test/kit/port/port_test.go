package port

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"
)

// TestFree checks that a port is given to one test, is below the ephemeral range, and can be
// listened on.
func TestFree(t *testing.T) {
	end, err := ephemeral()
	if err != nil {
		t.Fatal(err)
	}
	mine := map[uint16]bool{}
	for range 100 {
		p := Free(t)
		if mine[p] || int(p) < first || int(p) >= end {
			t.Fatalf("Free = %d after %v, want another port from %d to below %d", p, mine, first, end)
		}
		mine[p] = true
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
}

func TestLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "port")
	release := lock(path)
	if release == nil || lock(path) != nil {
		t.Fatal("two locks of one file: want the first to succeed and the second to fail")
	}
	release()
	if release = lock(path); release == nil {
		t.Fatal("lock after release failed, want it to succeed")
	}
	release()
}
