package node_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// The input and output of sdn/attack.
type (
	attackEnd struct {
		MAC  string `json:"mac"`
		Four string `json:"four,omitempty"`
		Six  string `json:"six,omitempty"`
	}
	attackConfig struct {
		Card      string       `json:"card"`
		Self      attackEnd    `json:"self"`
		Neighbour attackEnd    `json:"neighbour"`
		Gateway   attackEnd    `json:"gateway"`
		Metadata  string       `json:"metadata"`
		Foreign   []attackEnd  `json:"foreign"`
		Hosts     []netip.Addr `json:"hosts"`
		Ports     []uint16     `json:"ports"`
	}
	attackResult struct {
		Attack, Bad, Good, Answer string
		Allowed                   bool
	}
)

// attacks runs attacks from inside a guest, with its network card and its kernel, on four
// targets: an instance of its network that accepts everything, an instance of another project
// that does too and has the same addresses, the metadata service, and the host. The victims run
// nothing; packets that reach them are captured on their taps.
func attacks(t *testing.T, w *world) {
	g := w.debian
	self := g.get(t).Assignment.Ports[0]
	net1, err := client.Of[api.Network](w.tenant).Get(w.ctx, string(self.Network), client.Query{})
	if err != nil {
		t.Fatal(err)
	}
	open := func(c *client.API, project string) api.SecurityGroupID {
		sg, err := client.Of[api.SecurityGroup](c).Create(w.ctx, api.SecurityGroup{Meta: api.Meta{Name: "open", Project: project}, Spec: api.SecurityGroupSpec{Rules: []api.SecurityRule{
			{Direction: api.Ingress, Protocol: api.ProtocolAny}, {Direction: api.Egress, Protocol: api.ProtocolAny}}}})
		if err != nil {
			t.Fatal(err)
		}
		return api.SecurityGroupID(sg.Meta.ID)
	}
	twin, err := client.Of[api.Network](w.stranger).Create(w.ctx, api.Network{Meta: api.Meta{Name: "twin", Project: "two"}, Spec: api.NetworkSpec{Cidr4: net1.Spec.Cidr4, Cidr6: "fd5a:17::/64"}})
	if err != nil {
		t.Fatal(err)
	}
	other, err := client.Of[api.Network](w.stranger).Create(w.ctx, api.Network{Meta: api.Meta{Name: "other", Project: "two"}, Spec: api.NetworkSpec{Cidr4: "10.213.7.0/24", Cidr6: "fd5a:18::/64"}})
	if err != nil {
		t.Fatal(err)
	}
	openOne, openTwo := open(w.tenant, "one"), open(w.stranger, "two")
	victim := func(c *client.API, project, name string, networks ...api.InstanceNetwork) guest {
		in, err := client.Of[api.Instance](c).Create(w.ctx, api.Instance{Meta: api.Meta{Name: name, Project: project}, Spec: api.InstanceSpec{Flavor: "tiny", Image: "blank", Networks: networks}})
		if err != nil {
			t.Fatal(err)
		}
		return guest{w.node, c, in.Meta.ID}
	}
	neighbour := victim(w.tenant, "one", "neighbour", api.InstanceNetwork{Network: self.Network, SecurityGroups: []api.SecurityGroupID{openOne}})
	ends := func(v guest) (all []attackEnd, captures []*capture) {
		for i, p := range v.phase(t, api.InstanceRunning, 2*time.Minute).Assignment.Ports {
			all = append(all, attackEnd{p.Mac, p.Address4, p.Address6})
			captures = append(captures, newCapture(t, w.tap(t, v.id, i)))
		}
		return all, captures
	}
	near, nearCaptures := ends(neighbour)
	// Its address is unused in the attacker's own network, where an instance with this address
	// would answer.
	foreign := victim(w.stranger, "two", "victim", api.InstanceNetwork{Network: api.NetworkID(twin.Meta.ID), Address4: unused(t, w, net1), SecurityGroups: []api.SecurityGroupID{openTwo}},
		api.InstanceNetwork{Network: api.NetworkID(other.Meta.ID), SecurityGroups: []api.SecurityGroupID{openTwo}})
	far, farCaptures := ends(foreign)

	service := newHostService(t)
	c := attackConfig{Card: "eth0", Self: attackEnd{self.Mac, self.Address4, self.Address6}, Neighbour: near[0], Foreign: far,
		Gateway:  attackEnd{MAC: w.routerMAC(t, net1.Meta.ID), Four: net1.Assignment.Gateway4, Six: net1.Assignment.Gateway6},
		Metadata: strings.Fields(strings.Trim(w.nbctl(t, "get", "Logical_Switch_Port", "metadata-"+net1.Meta.ID, "addresses"), "[]\"\n"))[0],
		Hosts:    service.addresses, Ports: service.ports(w.listen)}
	results := w.attack(t, c)
	checkAttacks(t, results, nearCaptures[0], farCaptures)
	if from := service.clients(); len(from) > 0 {
		t.Errorf("the host's service was reached by %v, want no connection", from)
	}

	// The captures of the other project see packets from their own networks.
	for i, network := range []string{twin.Meta.ID, other.Meta.ID} {
		mine := packetMark(far[i])
		patience.Until(t, time.Minute, "a datagram that is allowed", func() bool {
			w.inject(t, network, far[i]) // repeated, because it is lost until the switch has the network's flows
			return farCaptures[i].saw(mine)
		})
	}

	// A guest that asks for another instance's metadata gets its own, or an error.
	const ask = `python3 -c '
from urllib.request import Request, urlopen
from urllib.error import HTTPError
for name in ["X-Real-IP", "X-Forwarded-For"]:
    try: print(urlopen(Request("http://169.254.169.254/latest/meta-data/instance-id", headers={name: "%s"}), timeout=20).read().decode())
    except HTTPError as e: print(e.code)'`
	if got := strings.Fields(g.sh(t, fmt.Sprintf(ask, near[0].Four))); !slices.Equal(got, []string{g.id, "403"}) {
		t.Errorf("instance ID from the metadata service with forged headers = %q, want [%s 403]", got, g.id)
	}

	neighbour.remove(t)
	foreign.remove(t)
	for _, n := range []string{twin.Meta.ID, other.Meta.ID} {
		if _, err := client.Of[api.Network](w.stranger).Delete(w.ctx, n); err != nil {
			t.Errorf("delete network %s: %v", n, err)
		}
	}
	for sg, c := range map[api.SecurityGroupID]*client.API{openOne: w.tenant, openTwo: w.stranger} {
		if _, err := client.Of[api.SecurityGroup](c).Delete(w.ctx, string(sg)); err != nil {
			t.Errorf("delete security group %s: %v", sg, err)
		}
	}
	w.nothingLeft(t)
}

// unused returns an address of a network that no instance of the tenant has.
func unused(t *testing.T, w *world, n api.Network) string {
	t.Helper()
	used := map[string]bool{}
	for in, err := range client.Of[api.Instance](w.tenant).All(w.ctx, client.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range in.Assignment.Ports {
			used[p.Address4] = true
		}
	}
	cidr := netip.MustParsePrefix(n.Spec.Cidr4)
	for a := cidr.Addr().Next().Next(); cidr.Contains(a); a = a.Next() {
		if !used[a.String()] {
			return a.String()
		}
	}
	t.Fatalf("network %s has no unused address", n.Spec.Cidr4)
	return ""
}

// attack runs sdn/attack inside the guest.
func (w *world) attack(t *testing.T, c attackConfig) (all []attackResult) {
	t.Helper()
	raw, err := exec.Command("gzip", "-9", "-c", built.Static(t, "sdn/attack")).Output()
	if err != nil {
		t.Fatalf("gzip: %v", err)
	}
	// In parts, because a request is limited to 1 MiB, and the guest is slow.
	w.debian.sh(t, "rm -f /root/attack*")
	var parts []string
	for part := range slices.Chunk(raw, 128<<10) {
		parts = append(parts, fmt.Sprintf("/root/attack.%d", len(parts)))
		w.debian.writeProgram(t, parts[len(parts)-1], part)
	}
	w.debian.sh(t, "cat "+strings.Join(parts, " ")+" | gunzip >/root/attack && chmod 755 /root/attack")
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r, err := w.tenant.Exec(w.ctx, w.debian.id, api.ExecRequest{Argv: []string{"/root/attack"}, Stdin: config, TimeoutSeconds: execLimit})
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("run the attacks in the guest: %v, exit code %d: %s", err, r.ExitCode, r.Stderr)
	}
	for _, l := range lines(string(r.Stdout)) {
		var a attackResult
		if err := json.Unmarshal([]byte(l), &a); err != nil {
			t.Fatalf("decode result %q: %v", l, err)
		}
		all = append(all, a)
	}
	t.Logf("%d attacks in %v", len(all), time.Since(began).Round(100*time.Millisecond))
	return all
}

// checkAttacks checks the results of the attacks and the captured packets.
func checkAttacks(t *testing.T, all []attackResult, near *capture, far []*capture) {
	t.Helper()
	if len(all) < 60 {
		t.Errorf("%d attacks were tried, want at least 60: %+v", len(all), all)
	}
	for _, a := range all {
		if a.Bad == "" {
			switch {
			case a.Allowed && a.Answer == "":
				t.Errorf("%s: an allowed request has no answer, so the test is not meaningful", a.Attack)
			case !a.Allowed && a.Answer != "":
				t.Errorf("%s: answer %q, want none", a.Attack, a.Answer)
			}
			continue
		}
		for watch := patience.Start(); !near.saw([]byte(a.Good)) && !watch.Over(20*time.Second); {
			time.Sleep(50 * time.Millisecond)
		}
		if !near.saw([]byte(a.Good)) {
			t.Errorf("%s: an allowed packet does not arrive, so the test is not meaningful", a.Attack)
		}
		if near.saw([]byte(a.Bad)) && !strings.HasPrefix(a.Attack, "elsewhere: ") {
			t.Errorf("%s: the packet reached the neighbor", a.Attack)
		}
		for _, f := range far {
			if f.saw([]byte(a.Bad)) || f.saw([]byte(a.Good)) {
				t.Errorf("%s: the packet reached another project", a.Attack)
			}
		}
	}
	if near.sawFrom(netip.MustParseAddr("169.254.169.254")) {
		t.Error("the metadata service sent an answer to the neighbor, which did not ask")
	}
}

// capture records the packets that are sent to a tap.
type capture struct {
	mu   sync.Mutex // guards seen
	seen [][]byte
}

func newCapture(t *testing.T, tap string) *capture {
	t.Helper()
	link, err := net.InterfaceByName(tap)
	if err != nil {
		t.Fatal(err)
	}
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00 // in network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Index}); err != nil {
		t.Fatal(err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16*mib) // on failure the default is used
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000}); err != nil {
		t.Fatal(err)
	}
	e, stop := &capture{}, make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 65536)
		for {
			select {
			case <-stop:
				return
			default:
			}
			n, from, err := unix.Recvfrom(fd, buf, 0)
			if l, ok := from.(*unix.SockaddrLinklayer); err == nil && ok && l.Pkttype == unix.PACKET_OUTGOING {
				e.mu.Lock()
				e.seen = append(e.seen, bytes.Clone(buf[:n]))
				e.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		wg.Wait()
		_ = unix.Close(fd)
	})
	return e
}

// saw reports whether a recorded frame contains the mark.
func (e *capture) saw(mark []byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.seen, func(f []byte) bool { return bytes.Contains(f, mark) })
}

// sawFrom reports whether an IPv4 packet from the address was recorded.
func (e *capture) sawFrom(a netip.Addr) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.seen, func(f []byte) bool {
		return len(f) >= 34 && f[12] == 0x08 && f[13] == 0 && bytes.Equal(f[26:30], a.AsSlice())
	})
}
