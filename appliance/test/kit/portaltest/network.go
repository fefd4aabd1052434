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

// ownNetwork gives a story a network in which only it is. Chromium breaks off
// its requests when an address comes or goes on its machine, as they do all the
// time beside tests of networks. It counts as offline without a link beside lo,
// and a link-local address would become usable only while the story runs.
const ownNetwork = `ip link set lo up && ip link add out type veth peer name far &&
ip link set out addrgenmode none && ip link set far addrgenmode none &&
ip addr add 192.0.2.1/24 dev out && ip link set out up && ip link set far up && exec "$@"`

var local = regexp.MustCompile(`=http://127\.0\.0\.1:([0-9]+)$`)

// relays are sockets in a folder, each named after the port on 127.0.0.1 that it
// leads to: of the addresses in env. ui/e2e/relay.mjs is their other end.
func relays(t testing.TB, env []string) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "portal") // sockets have short paths
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

// relay joins each connection to one to the address, until l is closed. What
// finds nobody there is closed.
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

// pass copies until from ends, and ends to.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if c, ok := to.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
	}
}
