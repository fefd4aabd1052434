package libvirt

import (
	"io"
	"net"
	"path/filepath"
	"testing"
)

// TestConsoleEndsUnread checks that the console ends normally if QEMU ends
// before it has read its input.
func TestConsoleEndsUnread(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := &console{Conn: near, release: func() {}}
	defer c.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("typed")); err != nil {
		t.Fatal(err)
	}
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Errorf("read the console after QEMU has ended: %v, want EOF", err)
	}
}
