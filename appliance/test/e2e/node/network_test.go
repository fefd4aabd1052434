package node_test

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// network: the guest has its assigned addresses, resolves its own name and gets its own
// metadata. A tenant does not see traces of the provider's network or of other tenants'
// instances.
func network(t *testing.T, w *world) {
	g := w.debian
	in := g.get(t)
	if len(in.Assignment.Ports) != 1 {
		t.Fatalf("ports = %+v, want one", in.Assignment.Ports)
	}
	port := in.Assignment.Ports[0]
	began := time.Now()
	patience.Until(t, 2*time.Minute, "the guest resolves its own name", func() bool {
		r, err := g.c.Exec(w.ctx, g.id, api.ExecRequest{Argv: []string{"getent", "hosts", "main"}}) // without the domain
		return err == nil && r.ExitCode == 0
	})
	t.Logf("its name resolves %v after its tools", time.Since(began).Round(100*time.Millisecond))
	var have map[string]bool
	patience.Until(t, time.Minute, "the guest has both addresses", func() bool {
		have = map[string]bool{}
		for _, word := range strings.Fields(g.sh(t, "ip -brief address show dev eth0")) {
			if p, err := netip.ParsePrefix(word); err == nil {
				have[p.Addr().String()] = true
			}
		}
		return have[port.Address4] && have[port.Address6]
	})
	const ask = `python3 -c 'from urllib.request import urlopen; print(urlopen("http://169.254.169.254/latest/meta-data/instance-id", timeout=20).read().decode())'`
	if id := strings.TrimSpace(g.sh(t, ask)); id != g.id {
		t.Errorf("instance ID from the metadata service = %q, want %s", id, g.id)
	}
	names(t, w, port)
	net, err := client.Of[api.Network](w.tenant).Get(w.ctx, string(port.Network), client.Query{})
	if err != nil {
		t.Fatal(err)
	}
	g.sh(t, "ping -c 1 -W 10 "+net.Assignment.Gateway4)

	// The guest may open connections; no connection to it is allowed.
	if out := w.mustCLI(w.token, "network", "trace", "main", net.Assignment.Gateway4, "icmp", "--project", "one"); strings.Contains(out, "OVN") {
		t.Errorf("a tenant's trace contains OVN's output, want none:\n%s", out)
	}
	if out := w.mustCLI(operatorToken(t, w), "network", "trace", "main", net.Assignment.Gateway4, "icmp", "--project", "one"); !strings.Contains(out, "OVN agrees") {
		t.Errorf("output of the operator's trace, want \"OVN agrees\":\n%s", out)
	}
	if out, err := w.cli(w.token, "network", "trace", "203.0.113.9", "main", "tcp/22", "--project", "one"); err == nil {
		t.Errorf("trace of a packet from outside to the instance succeeded, want an error:\n%s", out)
	}
	_, err = w.stranger.TraceNetwork(w.ctx, g.id, net.Assignment.Gateway4, "icmp", "")
	codeOf(t, err, api.CodeInvalid) // the instance does not exist for this tenant
	_, err = client.Of[api.Network](w.stranger).Get(w.ctx, string(port.Network), client.Query{})
	codeOf(t, err, api.CodeNotFound)
}

// names: names of this and other instances resolve or not, with EDNS, forwards and in reverse.
func names(t *testing.T, w *world, port api.InstancePort) {
	g := w.debian
	ask := func(name string, kind uint16) *dns.Msg {
		t.Helper()
		q := new(dns.Msg)
		q.SetQuestion(name, kind)
		q.SetEdns0(1232, true)
		packet, err := q.Pack()
		if err != nil {
			t.Fatal(err)
		}
		text := g.sh(t, fmt.Sprintf(`python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.sendto(bytes.fromhex("%x"), ("169.254.169.254", 53))
print(s.recv(4096).hex())'`, packet))
		raw, err := hex.DecodeString(strings.TrimSpace(text))
		m := new(dns.Msg)
		if err == nil {
			err = m.Unpack(raw)
		}
		if err != nil || m.Id != q.Id || m.IsEdns0() == nil {
			t.Fatalf("query of %s: answer %q with ID %d and EDNS %t (error %v), want ID %d and EDNS", name, text, m.Id, m.IsEdns0() != nil, err, q.Id)
		}
		return m
	}
	reverse, err := dns.ReverseAddr(port.Address4)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		kind uint16
		want string
	}{
		{"main.one.internal.", dns.TypeA, port.Address4},
		{"main.one.internal.", dns.TypeAAAA, port.Address6},
		{reverse, dns.TypePTR, "main.one.internal."},
		{outsideName + ".", dns.TypeA, outsideAddress},
		{"nobody.one.internal.", dns.TypeA, "NXDOMAIN"},
		{"nobody.outside.example.", dns.TypeA, "NXDOMAIN"},
		{"secret.two.internal.", dns.TypeA, "NXDOMAIN"},
	} {
		m := ask(c.name, c.kind)
		got := dns.RcodeToString[m.Rcode]
		for _, r := range m.Answer {
			got = strings.TrimPrefix(r.String(), r.Header().String())
		}
		if got != c.want {
			t.Errorf("answer for %s = %q, want %q:\n%v", c.name, got, c.want, m)
		}
	}
	// The way in which programs in the guest resolve names.
	if out := g.sh(t, "getent ahostsv4 "+outsideName); !strings.Contains(out, outsideAddress) {
		t.Errorf("getent ahostsv4 %s = %q, want %s", outsideName, out, outsideAddress)
	}
	if out := g.sh(t, "getent hosts "+port.Address4); !strings.Contains(out, "main.one.internal") {
		t.Errorf("getent hosts %s = %q, want main.one.internal", port.Address4, out)
	}
}

// backup: data that a running guest has written is backed up to a target and restored to
// another volume, which is attached to the running guest.
func backup(t *testing.T, w *world) {
	g, operator := w.debian, operatorToken(t, w)
	w.mustCLI(operator, "backup-target", "create", "nas", "--directory", filepath.Join(t.TempDir(), "nas"), "--wait")
	w.mustCLI(w.token, "volume", "create", "data", "--project", "one", "--size", "64MiB", "--instance", "main", "--wait")
	device := func(name string) string {
		v, err := client.Of[api.Volume](w.tenant).Get(w.ctx, name, client.Query{Project: "one"})
		if err != nil {
			t.Fatal(err)
		}
		path := "/dev/disk/by-id/virtio-" + v.Meta.ID
		patience.Until(t, time.Minute, "the guest sees "+name, func() bool {
			r, err := g.c.Exec(w.ctx, g.id, api.ExecRequest{Argv: []string{"test", "-e", path}})
			return err == nil && r.ExitCode == 0
		})
		return path
	}
	g.sh(t, "mkfs.ext4 -q "+device("data")+" && mkdir -p /mnt/data /mnt/rescue && mount "+device("data")+" /mnt/data && echo precious >/mnt/data/file && sync")
	w.mustCLI(w.token, "backup", "create", "monday", "--project", "one", "--volume", "data", "--target", "nas", "--wait")
	g.sh(t, "echo worthless >/mnt/data/file && sync")
	w.mustCLI(w.token, "volume", "create", "rescue", "--project", "one", "--backup", "monday", "--wait")
	w.mustCLI(w.token, "volume", "attach", "rescue", "main", "--project", "one", "--wait")
	if got := g.sh(t, "mount "+device("rescue")+" /mnt/rescue && cat /mnt/rescue/file"); got != "precious\n" {
		t.Errorf("content of the restored file = %q, want \"precious\\n\"", got)
	}
	g.sh(t, "umount /mnt/rescue /mnt/data")
	for _, name := range []string{"rescue", "data"} {
		w.mustCLI(w.token, "volume", "detach", name, "--project", "one", "--wait")
		w.mustCLI(w.token, "volume", "delete", name, "--project", "one", "--wait")
	}
	w.mustCLI(w.token, "backup", "delete", "monday", "--project", "one", "--wait")
	w.mustCLI(operator, "backup-target", "delete", "nas", "--wait")
	w.nothingLeft(t)
}
