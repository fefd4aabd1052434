package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// The answers of a node with two cards. %[4]d: the node's number; %[5]s: the cluster.
const answersMember = `disk: {serial: %[1]s}
erase: %[1]s
hostname: %[2]s
network:
  cards:
    - {name: main0, mac: "52:54:00:77:01:0%[4]d", addresses: 10.77.1.%[4]d/24, gateway: 10.77.1.254, roles: management}
    - {name: back0, mac: "52:54:00:77:02:0%[4]d", mtu: 9000, addresses: 10.77.2.%[4]d/24, roles: [tunnel, storage]}
cluster: {%[5]s}
root: {sshKeys: ["%[3]s"]}
console: {serial: ttyS0}
allowEmulation: true
after: poweroff
`

// clusterSize is the number of nodes.
const clusterSize = 3

// members is a cluster of installed nodes, each with a card in the network of management
// and one in that of tunnels and storage, and a second disk for Ceph.
type members struct {
	t     *testing.T
	nodes []*computer
	on    []*power
	key   string // of the operator
	ca    string // path
}

// TestMembers is the long test of a cluster of installed nodes, behind their firewalls: it
// forms; tunnels and Ceph use the second network, with large packets; an instance moves to
// another node, and instances on two nodes reach each other through the kernel's datapath;
// a node loses its power and comes back.
func TestMembers(t *testing.T) {
	layer.NeedLong(t, "appliance/test/e2e/cluster TestCluster, sds/ceph TestCeph, appliance/node/firewall TestPackets")
	m := install(t, prepared(t))
	t.Run("Firewall", func(t *testing.T) { m.closed(t) })
	t.Run("LargePackets", func(t *testing.T) { m.largePackets(t) })
	t.Run("Ceph", func(t *testing.T) { m.ceph(t) })
	t.Run("Instances", func(t *testing.T) { m.instances(t) })
	t.Run("Encryption", func(t *testing.T) { m.encryption(t) })
	t.Run("PowerCut", func(t *testing.T) { m.powerCut(t) })
}

// install installs the nodes, and waits until they are a cluster.
func install(t *testing.T, iso string) *members {
	t.Helper()
	m := &members{t: t, ca: filepath.Join(t.TempDir(), "ca.pem")}
	front, back := newLAN(t, "bxfront", "10.77.1.254/24", 1500), newLAN(t, "bxback", "", 9000)
	for i := range clusterSize {
		c := newComputer(t, fmt.Sprintf("node%d", i+1), fmt.Sprintf("MEMBER%d", i+1))
		c.mirror, c.memory = true, 5<<30 // of which Ceph and the node take 4
		run(t, "truncate", "-s", "16G", c.secondDisk())
		c.host, c.sshPort, c.apiPort, c.gatewayPort = fmt.Sprintf("10.77.1.%d", i+1), 22, 7480, 2222
		c.cards = []card{front.card(t, i+1, fmt.Sprintf("52:54:00:77:01:0%d", i+1)), back.card(t, i+1, fmt.Sprintf("52:54:00:77:02:0%d", i+1))}
		m.nodes = append(m.nodes, c)
	}
	first := m.nodes[0]
	first.install(t, iso, answersFAT(t, first.member(1, "init: test"))).complete()
	m.on = append(m.on, first.serves(t))
	m.key = first.ssh(t, "cat /var/lib/basalt/operator.key")
	if err := os.WriteFile(m.ca, []byte(first.ssh(t, "cat /var/lib/basalt/cluster/ca.pem")), 0o600); err != nil {
		t.Fatal(err)
	}
	first.slow(t)
	m.poll("the API again", first.healthy)
	var installing []*power
	for i, c := range m.nodes[1:] {
		token := strings.TrimSpace(m.basalt("node", "token", "create"))
		installing = append(installing, c.install(t, iso, answersFAT(t, c.member(i+2, "join: "+token))))
	}
	for _, p := range installing {
		p.complete()
	}
	for _, c := range m.nodes[1:] {
		m.on = append(m.on, c.servesFor(t, func() string { return m.key }))
		c.slow(t)
	}
	m.ready()
	return m
}

func (c *computer) member(number int, cluster string) string {
	return fmt.Sprintf(answersMember, c.serial, c.name, c.public, number, cluster)
}

// slow gives the node the election timeout for machines that others use too.
func (c *computer) slow(t *testing.T) {
	t.Helper()
	c.ssh(t, "echo 'election-timeout: 3s' >>/etc/basalt/basaltd.yaml && systemctl restart basaltd")
}

// ready waits until all nodes are.
func (m *members) ready() {
	m.t.Helper()
	m.poll("all nodes are ready, with networks", func(ctx context.Context) error {
		for _, c := range m.nodes {
			for _, want := range []string{`"state": ?"Ready"`, `"chassis": ?true`} {
				if err := m.nodes[0].reportsOf(c.name, m.key, want)(ctx); err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
			}
		}
		return nil
	})
}

// poll is power.poll, but seldom: the nodes have one slow processor each.
func (m *members) poll(what string, try func(context.Context) error) {
	m.t.Helper()
	m.on[0].pollEvery(5*time.Second, what, try)
}

// try runs basalt on this machine, as the operator.
func (m *members) try(ctx context.Context, args ...string) (string, error) {
	var servers []string
	for _, c := range m.nodes {
		servers = append(servers, "https://"+c.host+":7480")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(outputs(m.t), "bin", "basalt"), args...)
	cmd.Env = append(os.Environ(), "BASALT_SERVER="+strings.Join(servers, ","), "BASALT_CA_FILE="+m.ca, "BASALT_TOKEN="+m.key)
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("basalt %s: %w\n%s%s", strings.Join(args, " "), err, out.Bytes(), failed.Bytes())
	}
	return out.String(), err
}

func (m *members) basalt(args ...string) string {
	m.t.Helper()
	ctx, cancel := patience.Context(context.Background(), limit)
	defer cancel()
	out, err := m.try(ctx, args...)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// closed checks from a machine that is not a node which ports answer, in both networks of
// the nodes: what is for the other nodes does not, although it listens.
func (m *members) closed(t *testing.T) {
	for _, c := range m.nodes {
		for port, want := range map[string]bool{"22": true, "7480": true, "2222": true, "7481": true, "6641": false, "6642": false, "6643": false, "6644": false, "3300": false, "16509": false, "111": false} {
			ctx, cancel := patience.Context(t.Context(), 10*time.Second)
			if !want {
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second) // what is dropped never answers
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(c.host, port))
			cancel()
			if err == nil {
				_ = conn.Close()
			}
			if got := err == nil; got != want {
				t.Errorf("%s accepts a connection from outside of the cluster at port %s = %v (%v), want %v", c.name, port, got, err, want)
			}
		}
	}
}

// largePackets checks that the nodes measure what their tunnels carry: packets of 9000
// bytes, less Geneve's part.
func (m *members) largePackets(t *testing.T) {
	m.poll("the size of packets in tunnels", func(ctx context.Context) error {
		for _, c := range m.nodes {
			if err := m.nodes[0].reportsOf(c.name, m.key, `"networkMtu": ?8942`)(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// ceph enables Ceph on the second disks.
func (m *members) ceph(t *testing.T) {
	m.basalt("ceph", "enable", "--replicas", "2")
	for _, c := range m.nodes {
		m.basalt("disk", "use", c.name+"-basalt0002", "ceph")
	}
	m.poll("Ceph is ready", func(ctx context.Context) error {
		out, err := m.try(ctx, "ceph", "status", "-o", "json")
		if err == nil && (!regexp.MustCompile(`"phase": ?"Ready"`).MatchString(out) || !regexp.MustCompile(`"osdsUp": ?3`).MatchString(out)) {
			err = errors.New(out)
		}
		return err
	})
	for _, c := range m.nodes {
		if out := c.ssh(t, "ss -Htn state established | grep -c '10.77.2.*:6[89][0-9][0-9]' || true"); out == "0" {
			t.Errorf("connections of Ceph in the second network on %s = %s, want some", c.name, out)
		}
		if out := c.ssh(t, "ss -Htn state established | grep -c '10.77.1.*:\\(3300\\|6[89][0-9][0-9]\\)' || true"); out != "0" {
			t.Errorf("connections of Ceph in the first network on %s = %s, want none", c.name, out)
		}
	}
}

const project = `kind: Organization
meta: {name: acme}
spec: {displayName: Acme Ltd}
---
kind: Project
meta: {name: web, organization: acme}
spec: {}
---
kind: Flavor
meta: {name: tiny}
spec: {vcpus: 1, memoryBytes: 192MiB, rootBytes: 128MiB}
`

// instances starts two instances in a network of large packets, moves one to another node,
// and checks that they reach each other.
func (m *members) instances(t *testing.T) {
	file := filepath.Join(t.TempDir(), "project.yaml")
	if err := os.WriteFile(file, []byte(project), 0o600); err != nil {
		t.Fatal(err)
	}
	m.basalt("apply", "-f", file)
	m.basalt("image", "import", "small", "--file", filepath.Join(outputs(t), "images", "small-guest.qcow2"), "--public", "--wait")
	m.basalt("network", "create", "wide", "--project", "web", "--cidr4", "10.20.0.0/24", "--mtu", "8942", "--wait")
	for i, name := range []string{"one", "two"} {
		m.basalt("instance", "create", name, "--project", "web", "--flavor", "tiny", "--image", "small", "--no-gpu",
			"--network", "wide,10.20.0.1"+strconv.Itoa(i), "--wait", "--timeout", "15m")
	}
	for _, name := range []string{"one", "two"} {
		m.poll("the guest agent of "+name, func(ctx context.Context) error {
			_, err := m.try(ctx, "instance", "exec", name, "--project", "web", "--", "true")
			return err
		})
	}
	to := "node1"
	if m.nodeOf("one") == to {
		to = "node2"
	}
	if m.nodeOf("two") == to {
		m.basalt("instance", "migrate", "two", "--project", "web", "--to", "node3", "--wait", "--timeout", "15m")
	}
	m.basalt("instance", "migrate", "two", "--project", "web", "--to", to, "--wait", "--timeout", "15m")
	if at, other := m.nodeOf("two"), m.nodeOf("one"); at != to || other == to {
		t.Fatalf("nodes of the instances = %s and %s, want the second on %s and the first elsewhere", other, at, to)
	}
	m.reach()
}

// nodeOf returns the node of an instance.
func (m *members) nodeOf(instance string) string {
	m.t.Helper()
	for line := range strings.Lines(m.basalt("instance", "list", "--project", "web")) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == instance {
			for _, f := range fields {
				if strings.HasPrefix(f, "node") {
					return f
				}
			}
		}
	}
	return ""
}

// reach waits until one instance reaches the other with the largest packet.
func (m *members) reach() {
	m.t.Helper()
	m.poll("packets between the instances", func(ctx context.Context) error {
		_, err := m.try(ctx, "instance", "exec", "one", "--project", "web", "--", "ping", "-c", "3", "-s", "8914", "10.20.0.11")
		return err
	})
}

// encryption turns the encryption of tunnels on, while one instance sends packets to the
// other without a break, and rotates the keys.
func (m *members) encryption(t *testing.T) {
	exec := func(command string) string {
		return m.basalt("instance", "exec", "one", "--project", "web", "--", "sh", "-c", command)
	}
	exec("(ping -i 0.2 -s 1000 10.20.0.11 >/root/pings 2>&1 &)")
	m.basalt("security-settings", "set", "--encrypt-tunnels")
	m.encrypted("basalt-wg1")
	m.basalt("security-settings", "rotate-tunnel-keys")
	m.encrypted("basalt-wg0")
	m.reach()
	if out := exec("killall -INT ping; sleep 1; tail -n 3 /root/pings"); !strings.Contains(out, " 0% packet loss") {
		t.Errorf("packets while the encryption was turned on and keys were rotated: %s\nwant none lost", out)
	}
	for _, c := range m.nodes {
		if out := c.ssh(t, "cat /sys/class/net/basalt-wg?/statistics/rx_packets"); strings.Trim(out, "0\n") == "" {
			t.Errorf("%s received no encrypted packet", c.name)
		}
		if out := c.ssh(t, "nft list table inet basalt-tunnels | grep -c 'counter packets 0 .*drop'"); out != "2" {
			t.Errorf("rules of %s that dropped no plain packet = %s, want both", c.name, out)
		}
	}
}

// encrypted waits until all nodes are connected by WireGuard, and use the device only.
func (m *members) encrypted(device string) {
	m.t.Helper()
	ready := regexp.MustCompile(`"reason": ?"encrypted",[^{}]*"status": ?true, ?"type": ?"EncryptionReady"`)
	m.poll("encrypted tunnels through "+device, func(ctx context.Context) error {
		for _, c := range m.nodes {
			body, err := m.nodes[0].get(ctx, "/v1/nodes/"+c.name, m.key)
			if err != nil || !ready.Match(body) {
				return errors.Join(err, errors.New(string(body)))
			}
			out, err := c.try(ctx, "ls /sys/class/net | grep basalt-wg")
			if err != nil || out != device {
				return errors.Join(err, fmt.Errorf("devices of %s = %q, want %s", c.name, out, device))
			}
		}
		return nil
	})
}

// powerCut cuts the power of the node of the second instance; the others continue, and it
// comes back.
func (m *members) powerCut(t *testing.T) {
	lost := 1
	for i, c := range m.nodes {
		if i > 0 && c.name == m.nodeOf("two") {
			lost = i
		}
	}
	m.on[lost].cut()
	m.poll("the loss is noticed", m.nodes[0].reportsOf(m.nodes[lost].name, m.key, `"state": ?"(Suspect|Lost)"`))
	m.basalt("project", "create", "while", "--organization", "acme")
	m.on[lost] = m.nodes[lost].servesFor(t, func() string { return m.key })
	m.ready()
	m.poll("both instances run", func(ctx context.Context) error {
		out, err := m.try(ctx, "instance", "list", "--project", "web")
		if err == nil && strings.Count(out, "Running") != 2 {
			err = errors.New(out)
		}
		return err
	})
	m.reach()
}
