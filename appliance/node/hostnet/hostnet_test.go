package hostnet

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, d)
	}
}

func text(files []Rendered) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString("-- " + f.Name + " --\n" + f.Content)
	}
	return b.String()
}

func TestRender(t *testing.T) {
	declarations, err := filepath.Glob("testdata/render/*.yaml")
	if err != nil || len(declarations) == 0 {
		t.Fatalf("found %d declarations in testdata/render, error %v; want some", len(declarations), err)
	}
	for _, file := range declarations {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			n, err := Parse(data)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", text(Render(&n)))
		})
	}
}

// TestFaults checks that all faults are reported at once, each with its line, its
// field, and what to write instead.
func TestFaults(t *testing.T) {
	data, err := os.ReadFile("testdata/faults.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Parse(data)
	if err == nil {
		t.Fatal("Parse of a declaration full of faults returned nil, want an error")
	}
	golden(t, "testdata/faults.golden", err.Error()+"\n")
}

func TestMistakesOfForm(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "the file is empty",
		"cards: [{name: a}]":      "version: is missing",
		"version: 2\ncards: []":   "version 2 is not known",
		"version: 1\ncards: eno1": "is not a list",
		"version: 1\ncards: [{name: a, adresses: [dhcp4]}]":                                                                                                "did you mean addresses?",
		"version: 1\ncards: [{name: a, addresses: [192.0.2.1]}]":                                                                                           "not an address with a prefix length",
		"version: 1\ncards: [{name: a, mac: x}]":                                                                                                           "not a MAC address",
		"version: 1\ncards: [{name: a, mac: \"01:00:00:00:00:01\"}]":                                                                                       "not a MAC address of a card",
		"version: 1\ncards: &x [{name: a}]\nvlans: *x":                                                                                                     "refers to another place",
		"version: 1\ncards: [{name: a, mtu: 9000000000000}]":                                                                                               "not a number",
		"version: 1\ncards: [{name: a, addresses: [dhcp4]}]":                                                                                               "no link has role management",
		"version: 1\ncards: [{name: a, mtu: 1400, addresses: [dhcp4], roles: x}]":                                                                          "unknown role \"x\"",
		"version: 1\ncards: [{name: a, addresses: [dhcp4], roles: management}]\nfirewall: {}":                                                              "firewall.enabled: is missing",
		"version: 1\ncards: [{name: a, addresses: [dhcp4], roles: management}]\nfirewall: {enabled: true, allow: {protocol: tcp}}":                         "write allow: [{protocol",
		"version: 1\ncards: [{name: a, addresses: [dhcp4], roles: management}]\nfirewall: {enabled: true, allow: [{protocol: tcp, ports: http}]}":          "\"http\" is not a port",
		"version: 1\ncards: [{name: a, addresses: [dhcp4], roles: management}]\nfirewall: {enabled: true, allow: [{protocol: tcp, ports: 70000}]}":         "\"70000\" is not a port",
		"version: 1\ncards: [{name: a, addresses: [dhcp4], roles: management}]\nfirewall: {enabled: true, allow: [{protocol: tcp, ports: 1, from: here}]}": "\"here\" is not a network",
		"version: 1\ncards: [{name: a, addresses: [dhcp4], roles: management}]\nfirewall: {enabled: true, allow: [{protocol: tcp}]}":                       "there is no port",
		"version: 1\ncards: [{name: a, addresses: [dhcp4], roles: management}]\nfirewall: {enabled: true, allow: [{protocol: 112}]}":                       "unknown protocol \"112\"",
		"version: 1\ncards: [{name: a, addresses: [dhcp4], roles: management}]\nfirewall: {enabled: true, allow: [{protocol: vrrp, ports: 1}]}":            "protocol vrrp has no ports",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): error %v, want one with %q", text, err, want)
		}
	}
}

func TestWithRole(t *testing.T) {
	data, err := os.ReadFile("testdata/render/bond-vlans.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	all := n.WithRole(Tunnel)
	if len(all) != 1 || all[0].Name != "tunnel0" || all[0].StaticAddress().String() != "198.51.100.11" || n.PacketSize(all[0]) != 9000 {
		t.Errorf("links with role tunnel = %+v, want tunnel0 at 198.51.100.11 with the MTU of 9000 of its bond", all)
	}
}

// TestFormatKeepsFirewall checks that a declaration with a firewall and a named
// physical network is the same after it was formatted and parsed.
func TestFormatKeepsFirewall(t *testing.T) {
	data, err := os.ReadFile("testdata/render/bond-vlans.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if !n.Filtered() || len(n.Firewall.Allow) != 3 {
		t.Fatalf("firewall = %+v, want it enabled with three more services", n.Firewall)
	}
	if links := n.ExternalLinks(); len(links) != 1 || links["campus"] == nil || links["campus"].Name != "out0" {
		t.Errorf("external links = %v, want out0 for campus", links)
	}
	again, err := Parse(Format(&n))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(n, again, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("declaration formatted and parsed again differs (-want +got):\n%s", d)
	}
}

// FuzzParse checks that an accepted declaration is rendered to files in which no
// value can start a line or a section of its own.
func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(seeds, "testdata/faults.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	keys := "Match Name MACAddress PermanentMACAddress Type Kind Link MTUBytes Network Bond PrimarySlave Address Gateway DNS VLAN LinkLocalAddressing IPv6AcceptRA KeepConfiguration ConfigureWithoutCarrier Route Destination Metric DHCP DHCPv4 DHCPv6 ClientIdentifier UseHostname UseGateway UseDNS UseAutonomousPrefix DHCPv6Client NetDev Mode MIIMonitorSec LACPTransmitRate MinLinks TransmitHashPolicy Id Bridge STP MulticastSnooping Peer"
	known := map[string]bool{"": true}
	for _, k := range strings.Fields(keys) {
		known[k] = true
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := Parse(data)
		if err != nil {
			return
		}
		again, err := Parse(Format(&n))
		if err != nil {
			t.Fatalf("Parse of the formatted declaration\n%s: %v", Format(&n), err)
		}
		if d := cmp.Diff(n, again, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("declaration formatted and parsed again differs (-want +got):\n%s", d)
		}
		names := map[string]bool{}
		for _, file := range Render(&n) {
			if names[file.Name] || filepath.Base(file.Name) != file.Name {
				t.Fatalf("rendered file name %q of %q, want distinct names without directories", file.Name, data)
			}
			names[file.Name] = true
			for _, line := range strings.Split(file.Content, "\n") {
				key, _, _ := strings.Cut(strings.Trim(line, "[]"), "=")
				if !known[key] {
					t.Fatalf("rendered line %q of %q, want a known key", line, data)
				}
			}
		}
	})
}
