package trial

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// inside is set in the process that has network and mount namespaces of its own.
const inside = "BASALT_TEST_NETWORKD"

const networkdPath = "/usr/lib/systemd/systemd-networkd"

// TestNetworkd applies, confirms and rolls back declarations with a real
// systemd-networkd, in a network namespace with one card (veth), a router and DHCP
// servers. Bonds and VLANs need a kernel that supports them, which that of a build
// machine may not: installer/e2e TestLinks has them.
func TestNetworkd(t *testing.T) {
	if os.Getenv(inside) != "" {
		testInside(t)
		return
	}
	if testing.Short() {
		t.Skip("starts systemd-networkd")
	}
	if os.Getuid() != 0 {
		t.Skip("host: needs root for namespaces")
	}
	for _, program := range []string{networkdPath, "dbus-daemon", "unshare", "networkctl", "dnsmasq", "systemd-socket-activate"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("host: %v", err)
		}
	}
	ctx, cancel := patience.Context(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--", os.Args[0], "-test.run=^TestNetworkd$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("inside:\n%s", out)
	if err != nil {
		t.Fatalf("test in the namespaces: %v", err)
	}
}

func must(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", argv, err, out)
	}
}

// machineInside makes the namespaces look like a machine: a card, a router at its
// other end, and networkd with a bus.
func machineInside(t *testing.T) {
	t.Helper()
	for _, argv := range [][]string{
		{"mount", "--make-rprivate", "/"},
		{"mount", "-t", "proc", "proc", "/proc"},
		{"mount", "-t", "tmpfs", "tmpfs", "/run"},
		// Read-only, as in a container: then networkd does not wait for udev.
		{"mount", "-t", "sysfs", "-o", "ro", "sysfs", "/sys"},
		{"mkdir", "-p", "/etc/systemd/network", "/usr/local/lib/systemd", "/run/dbus", "/run/systemd/network", "/run/systemd/netif/links", "/run/systemd/netif/leases"},
		{"mount", "-t", "tmpfs", "tmpfs", "/etc/systemd/network"},
		{"mount", "-t", "tmpfs", "tmpfs", "/usr/local/lib/systemd"},
		{"chown", "-R", "systemd-network:", "/run/systemd/netif"},
		{"ip", "netns", "add", "router"},
		{"ip", "link", "add", "card0", "type", "veth", "peer", "name", "port0", "netns", "router"},
		{"ip", "-n", "router", "address", "add", "192.0.2.1/24", "dev", "port0"},
		{"ip", "-n", "router", "address", "add", "2001:db8::1/64", "dev", "port0", "nodad"},
		{"ip", "-n", "router", "link", "set", "port0", "up"},
		{"ip", "link", "set", "lo", "up"},
	} {
		must(t, argv...)
	}
	start(t, "/run/dbus/system_bus_socket", "dbus-daemon", "--system", "--nofork", "--nopidfile")
}

// start starts a program, and waits until the file ready exists. It returns a function
// that ends the program, as the test's end does.
func start(t *testing.T, ready string, argv ...string) func() {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "SYSTEMD_LOG_TARGET=console")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	t.Cleanup(end)
	within(t, argv[0]+" is ready", func() error { _, err := os.Stat(ready); return err })
	return end
}

// within waits until holds returns nil.
func within(t *testing.T, what string, holds func() error) {
	t.Helper()
	var err error
	defer func() {
		if err != nil {
			t.Logf("%s: %v", what, err)
		}
	}()
	patience.Until(t, time.Minute, what, func() bool { err = holds(); return err == nil })
}

// timed is the host with a time limit that is only recorded, and a networkd that the test
// starts, because systemd is not PID 1.
type timed struct {
	Host
	t     *testing.T
	end   func()
	armed bool
}

func (m *timed) Arm(context.Context, time.Duration) error { m.armed = true; return nil }

func (m *timed) Disarm(context.Context) error { m.armed = false; return nil }

func (m *timed) Stop(context.Context) error { m.end(); return nil }

func (m *timed) Start(context.Context) error {
	if err := os.RemoveAll("/run/systemd/netif/state"); err != nil {
		return err
	}
	m.end = start(m.t, "/run/systemd/netif/state", networkdPath)
	// Without udev, as here, version 254 configures a card before it has read which
	// addresses the card has, and leaves them.
	must(m.t, "networkctl", "reconfigure", "card0")
	return nil
}

// holds returns an error unless card0 has exactly these addresses and this MTU.
func holds(mtu int, addresses ...string) func() error {
	return func() error {
		i, err := net.InterfaceByName("card0")
		if err != nil {
			return err
		}
		all, err := i.Addrs()
		if err != nil {
			return err
		}
		var got []string
		for _, a := range all {
			if !strings.HasPrefix(a.String(), "fe80:") {
				got = append(got, a.String())
			}
		}
		slices.Sort(got)
		slices.Sort(addresses)
		if !slices.Equal(got, addresses) || i.MTU != mtu {
			return fmt.Errorf("card0 has %v and an MTU of %d, want %v and %d", got, i.MTU, addresses, mtu)
		}
		return nil
	}
}

func testInside(t *testing.T) {
	machineInside(t)
	m := &timed{t: t}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr := &Trial{Folders: System, Machine: m, Log: slog.New(slog.DiscardHandler)}
	apply := func(text string) error {
		t.Helper()
		n := parsed(t, text)
		s, err := Read(System)
		if err != nil {
			return err
		}
		prober := NewProber(t.Context(), nil, n, nil)
		if s.Confirmed != nil {
			prober = NewProber(t.Context(), parsed(t, string(s.Confirmed)), n, nil)
		}
		tr.Probe = prober.Probe
		return tr.Apply(t.Context(), []byte(text), n, time.Hour)
	}
	first := "version: 1\ncards:\n  - {name: card0, addresses: [192.0.2.11/24], gateway: 192.0.2.1, roles: [management]}\n"
	if err := errors.Join(apply(first), tr.Confirm(t.Context())); err != nil {
		t.Fatal(err)
	}
	within(t, "first declaration in force after confirming", holds(1500, "192.0.2.11/24"))

	second := "version: 1\ncards:\n  - {name: card0, mtu: 1400, addresses: [192.0.2.12/24, \"2001:db8::12/64\"], gateway: [192.0.2.1, \"2001:db8::1\"], routes: [{to: 203.0.113.0/24, via: 192.0.2.1}], roles: [management]}\n"
	if err := apply(second); err != nil {
		t.Fatal(err)
	}
	within(t, "second declaration in force on trial", holds(1400, "192.0.2.12/24", "2001:db8::12/64"))
	must(t, "sh", "-c", "ip route get 203.0.113.9 | grep -q 'via 192.0.2.1 dev card0'")
	if err := tr.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	within(t, "first declaration in force after the rollback", holds(1500, "192.0.2.11/24"))

	// A restarted networkd, as after a power cut, applies what is confirmed.
	if err := apply(second); err != nil {
		t.Fatal(err)
	}
	within(t, "second declaration in force on trial again", holds(1400, "192.0.2.12/24", "2001:db8::12/64"))
	if err := tr.Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(t, "networkctl", "reload")
	within(t, "second declaration in force after confirming and a reload", holds(1400, "192.0.2.12/24", "2001:db8::12/64"))

	// A missing gateway: the probe detects it, and the confirmed network is
	// restored.
	lost := "version: 1\ncards:\n  - {name: card0, addresses: [198.51.100.11/24], gateway: 198.51.100.1, roles: [management]}\n"
	tr.Probe = nil
	n := parsed(t, lost)
	prober := NewProber(t.Context(), parsed(t, second), n, nil)
	tr.Probe = func(ctx context.Context) error {
		within(t, "third declaration in force on trial", holds(1500, "198.51.100.11/24"))
		return prober.check(ctx)
	}
	err := tr.Apply(t.Context(), []byte(lost), n, time.Hour)
	if err == nil || !strings.Contains(err.Error(), "gateway 198.51.100.1 does not answer") {
		t.Errorf("Apply with a missing gateway: error %v, want that it does not answer", err)
	}
	within(t, "second declaration in force after the failed probe", holds(1400, "192.0.2.12/24", "2001:db8::12/64"))
	if m.armed {
		t.Error("time limit armed after the failed probe = true, want false")
	}

	// DHCP of both versions, then a network in which a peer does not answer.
	servePeer(t)
	serveDHCP(t)
	leased := "version: 1\ncards:\n  - {name: card0, addresses: [dhcp4, dhcp6], roles: [management]}\n"
	tr.Probe = nil
	if err := errors.Join(tr.Apply(t.Context(), []byte(leased), parsed(t, leased), time.Hour), tr.Confirm(t.Context())); err != nil {
		t.Fatal(err)
	}
	within(t, "addresses of both DHCP servers", holds(1500, "192.0.2.100/24", "2001:db8::100/128"))
	within(t, "the default route of the DHCP server", func() error {
		return exec.Command("sh", "-c", "ip route get 203.0.113.9 | grep -q 'via 192.0.2.1 dev card0'").Run()
	})
	apart := "version: 1\ncards:\n  - {name: card0, addresses: [198.51.100.11/24], roles: [management]}\n"
	n = parsed(t, apart)
	prober = NewProber(t.Context(), parsed(t, leased), n, []string{peer, "192.0.2.1:1"})
	if got := prober.Required(); !slices.Equal(got, []Target{{Peer: peer}}) {
		t.Errorf("targets that must answer = %v, want the peer that answered before", got)
	}
	tr.Probe = func(ctx context.Context) error {
		within(t, "fourth declaration in force on trial", holds(1500, "198.51.100.11/24"))
		return prober.check(ctx)
	}
	err = tr.Apply(t.Context(), []byte(apart), n, time.Hour)
	if err == nil || !strings.Contains(err.Error(), peer+" does not answer") {
		t.Errorf("Apply of a network without the peer: error %v, want that it does not answer", err)
	}
	within(t, "DHCP's addresses after the loss of the peer", holds(1500, "192.0.2.100/24", "2001:db8::100/128"))
	share(t, tr, apart)
}

// share puts the only card into a bridge, so that external networks use it too, takes
// that back, and keeps it the second time. apart is a declaration with another address.
func share(t *testing.T, tr *Trial, apart string) {
	t.Helper()
	tr.Probe = nil
	shared := "version: 1\ncards:\n  - {name: card0, mtu: 1400}\nbridges:\n  - {name: br0, on: card0, addresses: [192.0.2.13/24], gateway: 192.0.2.1, roles: [management, external]}\n"
	apply := func() {
		t.Helper()
		if err := tr.Apply(t.Context(), []byte(shared), parsed(t, shared), time.Hour); err != nil {
			t.Fatal(err)
		}
		bothPass(t)
	}
	apply()
	if err := tr.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	within(t, "DHCP's addresses after the bridge was taken back", holds(1500, "192.0.2.100/24", "2001:db8::100/128"))
	noBridge := func() error {
		for _, name := range []string{"br0", "br0-net"} {
			if _, err := net.InterfaceByName(name); err == nil {
				return errors.New(name + " is still there")
			}
		}
		return nil
	}
	within(t, "no bridge is left", noBridge)
	apply()
	if err := tr.Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(t, "networkctl", "reload")
	bothPass(t)
	if err := errors.Join(tr.Apply(t.Context(), []byte(apart), parsed(t, apart), time.Hour), tr.Confirm(t.Context())); err != nil {
		t.Fatal(err)
	}
	within(t, "the card without a bridge", holds(1500, "198.51.100.11/24"))
	within(t, "no bridge is left after a declaration without one", noBridge)
}

// bothPass checks that the node reaches the router through the bridge, and so does what
// is behind the interface of external networks, which is moved to a namespace for that.
func bothPass(t *testing.T) {
	t.Helper()
	within(t, "the node reaches the router through the bridge", func() error {
		return exec.Command("sh", "-c", "ip route get 192.0.2.1 | grep -q 'dev br0 src 192.0.2.13' && ping -n -q -c 1 -W 5 192.0.2.1").Run()
	})
	_ = exec.Command("ip", "netns", "add", "guests").Run() // it may be there
	if _, err := net.InterfaceByName("br0-ext"); err == nil {
		must(t, "ip", "link", "set", "br0-ext", "netns", "guests", "up")
		must(t, "ip", "-n", "guests", "address", "add", "192.0.2.77/24", "dev", "br0-ext")
	}
	within(t, "what is behind the external interface reaches the router, with the whole MTU", func() error {
		return exec.Command("ip", "netns", "exec", "guests", "ping", "-n", "-q", "-c", "1", "-W", "5", "-M", "do", "-s", "1372", "192.0.2.1").Run()
	})
}

// peer is another node, in the router's namespace.
const peer = "192.0.2.1:7481"

// servePeer accepts connections to the peer.
func servePeer(t *testing.T) {
	t.Helper()
	start(t, "/run/dbus/system_bus_socket", "ip", "netns", "exec", "router", "systemd-socket-activate", "--accept", "-l", peer, "/bin/true")
	within(t, "the peer accepts connections", func() error {
		c, err := net.Dial("tcp", peer)
		if err == nil {
			err = c.Close()
		}
		return err
	})
}

// serveDHCP starts DHCP servers for IPv4 and IPv6, with one address each.
func serveDHCP(t *testing.T) {
	t.Helper()
	start(t, "/run/dnsmasq.pid", "ip", "netns", "exec", "router", "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0",
		"--interface=port0", "--bind-interfaces", "--user=root", "--pid-file=/run/dnsmasq.pid", "--dhcp-leasefile=/run/dnsmasq.leases",
		"--dhcp-authoritative", "--enable-ra", "--dhcp-range=192.0.2.100,192.0.2.100,1h", "--dhcp-range=2001:db8::100,2001:db8::100,64,1h")
}
