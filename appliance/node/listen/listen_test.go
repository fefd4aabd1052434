package listen

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

func addresses(all ...string) (out []netip.Addr) {
	for _, a := range all {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

func TestParseRole(t *testing.T) {
	for address, want := range map[string]hostnet.Role{"management:7480": "management", "storage:1": "storage"} {
		if role, port, ok := ParseRole(address); role != want || port == 0 || !ok {
			t.Errorf("ParseRole(%q) = %q, %d, %v; want %s", address, role, port, ok, want)
		}
	}
	for _, address := range []string{"0.0.0.0:7480", ":7480", "management", "management:0", "management:x", "node1:7480", "[::1]:7480"} {
		if role, port, ok := ParseRole(address); ok {
			t.Errorf("ParseRole(%q) = %q, %d, true; want not ok", address, role, port)
		}
	}
}

func TestAddresses(t *testing.T) {
	n, err := hostnet.Parse([]byte("version: 1\ncards:\n" +
		"  - {name: a, addresses: [192.0.2.11/24, slaac], roles: [management]}\n" +
		"  - {name: b, addresses: [dhcp4], defaultRoute: false, roles: [management, storage]}\n" +
		"  - {name: c, addresses: [203.0.113.11/24], roles: [tunnel]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	present := func(l *hostnet.Link) []netip.Addr {
		return map[string][]netip.Addr{
			"a": addresses("192.0.2.11", "2001:db8::11", "fe80::1"), "b": addresses("198.51.100.7"), "c": addresses("203.0.113.11"),
		}[l.Name]
	}
	for _, test := range []struct {
		role hostnet.Role
		n    *hostnet.Network
		want []netip.Addr
	}{
		{hostnet.Management, &n, addresses("127.0.0.1", "192.0.2.11", "198.51.100.7", "::1", "2001:db8::11")},
		{hostnet.Storage, &n, addresses("127.0.0.1", "198.51.100.7", "::1")},
		{hostnet.External, &n, addresses("127.0.0.1", "::1")},
		{hostnet.Management, nil, addresses("::")},
	} {
		got := Addresses(test.n, test.role, present)
		if d := cmp.Diff(test.want, got, cmpopts.EquateComparable(netip.Addr{})); d != "" {
			t.Errorf("addresses of role %s, declared %v, differ (-want +got):\n%s", test.role, test.n != nil, d)
		}
	}
}

// TestFollow checks that a server is reachable at exactly the present addresses, while
// they change, and that connections continue when their address is gone.
func TestFollow(t *testing.T) {
	var mu sync.Mutex
	now := addresses("127.0.0.1", "127.0.0.2", "192.0.2.99") // the last is not this machine's
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).AddrPort().Port()
	_ = free.Close()
	l, err := New(Options{What: "test", Port: port, Log: slog.New(slog.DiscardHandler), Addresses: func() []netip.Addr {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	srv := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	go func() { served <- srv.Serve(l) }()
	expect := func(answers bool, all ...string) {
		t.Helper()
		for _, a := range all {
			c, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", a, port), 10*time.Second)
			if (err == nil) != answers {
				t.Errorf("connection to %s: error %v, want that it is accepted: %v", a, err, answers)
			}
			if err == nil {
				_ = c.Close()
			}
		}
	}
	set := func(all ...string) {
		mu.Lock()
		now = addresses(all...)
		mu.Unlock()
		if err := l.sync(); err != nil {
			t.Errorf("addresses %v: %v", all, err)
		}
	}
	expect(true, "127.0.0.1", "127.0.0.2")
	expect(false, "127.0.0.3")
	kept, err := net.Dial("tcp", fmt.Sprintf("127.0.0.2:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	answers := bufio.NewReader(kept)
	request := func(when string) {
		t.Helper()
		if _, err := fmt.Fprintf(kept, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Errorf("request %s: %v, want that the connection continues", when, err)
			return
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Errorf("answer %s: %v", when, err)
			return
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	request("while the address is present") // and only a connection that was accepted is kept
	set("127.0.0.1", "127.0.0.3")
	expect(true, "127.0.0.1", "127.0.0.3")
	expect(false, "127.0.0.2")
	request("after the address is gone")
	set("::") // the declaration is gone
	expect(true, "127.0.0.1", "127.0.0.2")
	set("127.0.0.1")
	expect(false, "127.0.0.2")
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := patience.Receive(t, 10*time.Second, "end of Serve", served); err == nil {
		t.Error("Serve after Close returned nil, want an error")
	}
	expect(false, "127.0.0.1")
}

// TestNoAddress checks that a port that is in use everywhere is an error.
func TestNoAddress(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	port := other.Addr().(*net.TCPAddr).AddrPort().Port()
	l, err := New(Options{What: "test", Port: port, Log: slog.New(slog.DiscardHandler), Addresses: func() []netip.Addr { return addresses("127.0.0.1") }})
	if err == nil {
		_ = l.Close()
		t.Error("New on a port in use returned nil, want an error")
	}
}
