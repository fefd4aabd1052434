package hardware

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/netns"
)

// TestAskPath measures a path between two network namespaces with ping: the other end
// takes smaller packets than this one sends, as a switch with another MTU does, and drops
// larger ones without a word.
func TestAskPath(t *testing.T) {
	netns.Need(t, "ping")
	here, there := fmt.Sprintf("mtu%d-here", os.Getpid()), fmt.Sprintf("mtu%d-there", os.Getpid())
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %q: %v: %s", args, err, out)
		}
	}
	for i, ns := range []string{here, there} {
		netns.Add(t, ns)
		if i == 1 {
			ip("link", "add", "card0", "netns", here, "type", "veth", "peer", "name", "card0", "netns", there)
		}
	}
	for i, ns := range []string{here, there} {
		ip("-n", ns, "address", "add", fmt.Sprintf("192.0.2.%d/24", i+1), "dev", "card0")
		ip("-n", ns, "address", "add", fmt.Sprintf("2001:db8::%d/64", i+1), "dev", "card0", "nodad")
		ip("-n", ns, "link", "set", "card0", "mtu", "9000", "up")
	}
	ask := func(address string) (p Path) {
		if err := netns.Do(here, func() error { p = askPath(t.Context(), Target{Node: "n2", Address: address}); return nil }); err != nil {
			t.Fatal(err)
		}
		return p
	}
	expect := func(address string, want int) {
		t.Helper()
		if p := ask(address); p.Err != nil || p.LocalMTU != 9000 || p.MTU != want || p.Interface != "card0" {
			t.Errorf("path to %s = %+v, want %d of 9000 bytes", address, p, want)
		}
	}
	expect("192.0.2.2", 9000)
	expect("2001:db8::2", 9000)
	ip("-n", there, "link", "set", "card0", "mtu", "1450")
	expect("192.0.2.2", 1400)
}
