package portaltest

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
)

// ownNetwork runs a story in a network namespace of its own. Chromium aborts its requests when
// an address is added to or removed from its machine, which happens constantly beside tests of
// networks. It considers itself offline without a link besides lo, and a link-local address
// would become usable only while the story runs.
const ownNetwork = `ip link set lo up && ip link add out type veth peer name far &&
ip link set out addrgenmode none && ip link set far addrgenmode none &&
ip addr add 192.0.2.1/24 dev out && ip link set out up && ip link set far up && exec "$@"`

var local = regexp.MustCompile(`=http://127\.0\.0\.1:([0-9]+)$`)

// relays creates a folder with a socket for each address on 127.0.0.1 in env, named after its
// port, that forwards to this port. ui/e2e/relay.mjs is the other end.
func relays(t testing.TB, env []string) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "portal") // the length of socket paths is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, e := range env {
		m := local.FindStringSubmatch(e)
		if m == nil {
			continue
		}
		l, err := net.Listen("unix", filepath.Join(dir, m[1]))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go relay(l, "127.0.0.1:"+m[1])
	}
	return dir
}

// relay forwards each connection to the address until l is closed. It closes connections if
// nothing listens there.
func relay(l net.Listener, address string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			out, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			defer out.Close()
			var both sync.WaitGroup
			both.Go(func() { pass(out, in) })
			pass(in, out)
			both.Wait()
		}()
	}
}

// pass copies until from ends, and then closes to for writing.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if c, ok := to.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
	}
}
