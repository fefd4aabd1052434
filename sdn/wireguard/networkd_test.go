package wireguard

import (
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

const networkd = "/usr/lib/systemd/systemd-networkd"

// networkdScript starts networkd in namespaces of its own, runs a program that sets the
// rules, and has networkd configure its link again.
const networkdScript = `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mount -t sysfs -o ro sysfs /sys
mkdir -p /etc/systemd/network /run/dbus /run/systemd/network /run/systemd/netif/links /run/systemd/netif/leases
mount -t tmpfs tmpfs /etc/systemd/network
chown -R systemd-network: /run/systemd/netif
ip link add card0 type veth peer name port0
ip link set port0 up
ip link set lo up
ip tuntap add dev encrypted0 mode tun
ip link set encrypted0 up
printf '[Match]\nName=card0\n[Network]\nAddress=192.0.2.11/24\n' >/etc/systemd/network/10-card.network
dbus-daemon --system --nofork --nopidfile &
while ! [ -S /run/dbus/system_bus_socket ]; do sleep 0.1; done
` + networkd + ` &
while ! ip -4 address show card0 | grep -q 192.0.2.11; do sleep 0.1; done
"$0" -test.run='^TestSurvivesNetworkd$' -test.v
ip rule add pref 7000 lookup 7000
networkctl reconfigure card0
while ip rule show pref 7000 | grep -q 7000; do sleep 0.1; done # it removes a rule of others
echo RULES; ip rule; ip route show table 6081
`

// TestSurvivesNetworkd checks that systemd-networkd, which removes rules and routes of
// others, keeps those that are set here.
func TestSurvivesNetworkd(t *testing.T) {
	const inside = "BASALT_TEST_NETWORKD"
	if os.Getenv(inside) != "" {
		if err := (Host{}).route(t.Context(), netip.MustParseAddr("192.0.2.11"), "encrypted0", []netip.Addr{netip.MustParseAddr("192.0.2.12")}); err != nil {
			t.Fatal(err)
		}
		return
	}
	if testing.Short() {
		t.Skip("starts systemd-networkd")
	}
	if os.Getuid() != 0 {
		t.Skip("host: namespaces require root")
	}
	for _, program := range []string{networkd, "networkctl", "dbus-daemon", "unshare", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("host: %v", err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--", "bash", "-c", networkdScript, self)
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	_, rules, found := strings.Cut(string(out), "RULES\n")
	if err != nil || !found {
		t.Fatalf("in the namespaces: %v\n%s", err, out)
	}
	for _, want := range []string{"6081:\tfrom all ipproto udp dport 6081 lookup 6081", "blackhole default proto kernel", "192.0.2.12 dev encrypted0 proto kernel scope link src 192.0.2.11"} {
		if !strings.Contains(rules, want) {
			t.Errorf("after networkd has configured its link there is no %q:\n%s", want, rules)
		}
	}
}
