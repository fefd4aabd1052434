package hardware

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAskPath measures a path between two network namespaces with ping: the other end
// takes smaller packets than this one sends, as a switch with another MTU does, and drops
// larger ones without a word.
func TestAskPath(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("host: namespaces require root")
	}
	for _, program := range []string{"ip", "ping"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("host: %v", err)
		}
	}
	here, there := fmt.Sprintf("mtu%d-here", os.Getpid()), fmt.Sprintf("mtu%d-there", os.Getpid())
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %q: %v: %s", args, err, out)
		}
	}
	for i, ns := range []string{here, there} {
		ip("netns", "add", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
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
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			f, err := os.Open("/run/netns/" + here)
			if err == nil {
				defer func() { _ = f.Close() }()
				err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			}
			if err == nil {
				p = askPath(t.Context(), Target{Node: "n2", Address: address})
			}
			done <- err
		}()
		if err := <-done; err != nil {
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
