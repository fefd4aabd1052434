package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// serves starts the installed disk and waits for the node's login prompt on the serial
// line, its SSH, its API and its network. The node is the first of its cluster.
func (c *computer) serves(t *testing.T) *power {
	t.Helper()
	return c.servesFor(t, func() string { return c.ssh(t, "cat /var/lib/basalt/operator.key") })
}

// servesFor is serves with the function that returns the operator's key.
func (c *computer) servesFor(t *testing.T, operator func() string) *power {
	t.Helper()
	began := time.Now()
	p := c.powerOn(t)
	p.see(c.name + " login:")
	t.Logf("%s: from power on to the login: %v, %v of processors", c.firmware(), time.Since(began).Round(time.Second), p.spent())
	p.poll("SSH", func(ctx context.Context) error { _, err := c.try(ctx, "true"); return err })
	p.poll("the API", c.healthy)
	p.poll("the SSH gateway to instances", c.gateway)
	t.Logf("%s: and to the API: %v, %v of processors", c.firmware(), time.Since(began).Round(time.Second), p.spent())
	p.poll("its network: OVN on the kernel's datapath", c.networked(operator()))
	// The node's status from before a power cut is kept until it reports again, so the
	// switch itself is checked.
	p.poll("its switch, in the kernel", func(ctx context.Context) error {
		out, err := c.try(ctx, "ovs-vsctl --db=unix:/run/basalt/ovs/db.sock --timeout=20 get bridge br-int datapath_type")
		if err == nil && !strings.Contains(out, "system") {
			err = fmt.Errorf("the datapath is %s", out)
		}
		return err
	})
	t.Logf("%s: and to its network: %v, %v of processors", c.firmware(), time.Since(began).Round(time.Second), p.spent())
	if failed := c.ssh(t, "systemctl --failed --plain --no-legend"); failed != "" {
		t.Errorf("failed units, want none:\n%s", failed)
	}
	if c.ssh(t, "hostname") != c.name {
		t.Errorf("the node's host name is not %s as in the answers", c.name)
	}
	c.bounded(t)
	return p
}

// bounded checks that basaltd has the control group in which it creates those of vGPUs,
// with all controllers, and that its own processes are in another.
func (c *computer) bounded(t *testing.T) {
	t.Helper()
	const unit = "/sys/fs/cgroup/system.slice/basaltd.service/"
	if have := c.ssh(t, "cat "+unit+"basalt-vgpu/cgroup.subtree_control"); have != "cpu memory pids" {
		t.Errorf("controllers of the vGPUs' groups = %q, want cpu memory pids", have)
	}
	if c.ssh(t, "cat "+unit+"basaltd/cgroup.procs") == "" {
		t.Error("basaltd's own control group has no process, want some")
	}
}

// networked checks with the API, as the operator, whether networks work on the node. A
// command on the node itself would take seconds on an emulated computer.
func (c *computer) networked(key string) func(context.Context) error {
	return c.reports(key, `"chassis": ?true`)
}

// reports checks with the API, as the operator, whether the node's object matches the
// expression.
func (c *computer) reports(key, want string) func(context.Context) error {
	return c.reportsOf(c.name, key, want)
}

// reportsOf checks the same of another node's object.
func (c *computer) reportsOf(node, key, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		body, err := c.get(ctx, "/v1/nodes/"+node, key)
		if err == nil && !regexp.MustCompile(want).Match(body) {
			err = errors.New(string(body))
		}
		return err
	}
}

// sharesCard checks that the node has its address on the bridge of its only card, and that
// a machine behind the external networks' end of it, here in a network namespace, reaches
// the router as well.
func (c *computer) sharesCard(t *testing.T, p *power) {
	t.Helper()
	if out := c.ssh(t, "ip -o -4 address show dev br0"); !strings.Contains(out, "10.0.2.15/24") {
		t.Errorf("addresses of br0 = %q, want 10.0.2.15/24", out)
	}
	const vsctl = "ovs-vsctl --db=unix:/run/basalt/ovs/db.sock --timeout=20 "
	p.poll("external networks on the card", func(ctx context.Context) error {
		_, err := c.try(ctx, vsctl+"port-to-br br0-ext")
		return err
	})
	c.ssh(t, `set -e
ip netns add outside
`+vsctl+"add-port $("+vsctl+`port-to-br br0-ext) probe0 -- set interface probe0 type=internal
ip link set probe0 netns outside
ip -n outside address add 10.0.2.77/24 dev probe0
ip -n outside link set probe0 up
ip netns exec outside ping -n -q -c 1 -w 60 10.0.2.2
ip netns del outside
`+vsctl+"--if-exists del-port probe0")
}

// identity prints the identity of a node, which never changes.
const identity = "cat /etc/machine-id; sha256sum </var/lib/basalt/cluster/ca.pem"

// healthy checks that the node's API answers.
func (c *computer) healthy(ctx context.Context) error {
	_, err := c.get(ctx, "/v1/healthz", "")
	return err
}

// gateway checks that an SSH server answers at the port of the SSH gateway.
func (c *computer) gateway(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", c.host, c.gatewayPort))
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	line, err := bufio.NewReader(io.LimitReader(conn, 256)).ReadString('\n')
	if err == nil && strings.TrimSpace(line) != "SSH-2.0-Basalt" {
		err = fmt.Errorf("it says %q, want SSH-2.0-Basalt", line)
	}
	return err
}

// apiClient keeps its connections: a handshake costs an emulated computer more CPU time
// than the requests. The certificate is signed by the cluster's own CA, which is
// unknown here.
var apiClient = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}}

// get sends a GET request to the node's API, with a key or without. The API must have a
// certificate for the node's name.
func (c *computer) get(ctx context.Context, path, key string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s:%d%s", c.host, c.apiPort, path), nil)
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := apiClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", resp.Status, body), err)
	}
	if certs := resp.TLS.PeerCertificates; len(certs) == 0 || certs[0].VerifyHostname(c.name) != nil {
		return nil, fmt.Errorf("the certificate is not %s's", c.name)
	}
	return body, nil
}

// try runs a command on the node. It ends when the computer goes off.
func (c *computer) try(ctx context.Context, command string) (string, error) {
	argv := c.sshArgs(command)
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// sshArgs returns the command line that runs a command on the node. All use one
// connection, since each costs an emulated computer seconds.
func (c *computer) sshArgs(command string) []string {
	return []string{"ssh", "-q", "-p", fmt.Sprint(c.sshPort), "-i", c.key, "-o", "BatchMode=yes",
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-o", "ControlMaster=auto", "-o", "ControlPersist=yes", "-o", "ControlPath=" + filepath.Join(c.dir, "ssh"), "root@" + c.host, command}
}

func (c *computer) ssh(t *testing.T, command string) string {
	t.Helper()
	ctx, cancel := patience.Context(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := c.try(ctx, command)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

// bystander is an idle virtual machine that belongs to no instance.
const bystander = `<domain type="qemu"><name>bystander</name><memory unit="MiB">32</memory><os><type arch="x86_64" machine="q35">hvm</type></os></domain>`

// restartsAlone checks that every daemon can be restarted, and restarts by itself,
// while a running QEMU process is not affected.
func (c *computer) restartsAlone(t *testing.T, p *power) {
	t.Helper()
	const qemu = "pgrep -f guest=bystander"
	c.ssh(t, "echo '"+bystander+"' >/run/bystander.xml && virsh -q create --paused /run/bystander.xml")
	before := c.ssh(t, qemu)
	c.ssh(t, "systemctl restart basaltd basalt-gpud basalt-fence libvirtd")
	p.poll("the API again", c.healthy)
	pid := c.ssh(t, "systemctl show -P MainPID basaltd")
	c.ssh(t, "systemctl kill --kill-whom=main --signal=KILL basaltd basalt-gpud basalt-fence")
	p.poll("another basaltd", func(ctx context.Context) error {
		now, err := c.try(ctx, "systemctl show -P MainPID basaltd")
		if err == nil && (now == pid || now == "0") {
			err = errors.New("it is " + now)
		}
		return err
	})
	p.poll("the API after a kill", c.healthy)
	c.bounded(t)
	if after := c.ssh(t, qemu); after != before {
		t.Errorf("process of the virtual machine after the restarts = %s, want %s", after, before)
	}
	p.poll("every daemon", func(ctx context.Context) error {
		out, err := c.try(ctx, "systemctl is-active basaltd basalt-gpud basalt-fence")
		if err == nil && out != "active\nactive\nactive" {
			err = errors.New(out)
		}
		return err
	})
}
