package port

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"
)

// A port is one test's, lies where the kernel gives none away, and can be listened on.
func TestFree(t *testing.T) {
	end, err := ephemeral()
	if err != nil {
		t.Fatal(err)
	}
	mine := map[uint16]bool{}
	for range 100 {
		p := Free(t)
		if mine[p] || int(p) < first || int(p) >= end {
			t.Fatalf("got %d after %v, want another one from %d to %d", p, mine, first, end)
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
		t.Fatal("want a lock once")
	}
	release()
	if release = lock(path); release == nil {
		t.Fatal("want it again when it was let go")
	}
	release()
}
