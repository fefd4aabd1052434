package answers

import (
	"encoding/base64"
	"errors"
	"flag"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/appliance/strictyaml"
)

var update = flag.Bool("update", false, "write the golden files")

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParse(t *testing.T) {
	a, err := Parse(read(t, "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := Answers{
		Disk: Disk{Serial: "BASALT0001"}, Mirror: &Disk{Serial: "BASALT0002"}, Erase: []string{"BASALT0001", "BASALT0002"}, Hostname: "node1",
		Network: Network{
			Path:    Path{Interface: "eno1", Address: netip.MustParsePrefix("192.0.2.11/24")},
			Gateway: netip.MustParseAddr("192.0.2.1"),
			DNS:     []netip.Addr{netip.MustParseAddr("192.0.2.53"), netip.MustParseAddr("2001:db8::53")},
			Second:  &Path{MAC: "52:54:00:12:34:56", Address: netip.MustParsePrefix("198.51.100.11/24")}, External: true,
		},
		NTP: []string{"ntp.example.net", "192.0.2.123"}, Cluster: Cluster{Init: "basalt"},
		SharedDir: "/srv/shared", FileSystems: FileSystems{Root: 32 << 30, Logs: 8 << 30}, Serial: "ttyS0,115200",
		GPUDriver: &GPUDriver{From: &Place{Device: "/dev/disk/by-label/BASALT-ANS", Path: "nvidia"}}, AllowEmulation: true, After: PowerOff,
	}
	want.Root = a.Root // compared below
	if d := cmp.Diff(want, a, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
		t.Errorf("answers: mismatch (-want +got):\n%s", d)
	}
	if len(a.Root.SSHKeys) != 1 || !strings.HasPrefix(a.Root.PasswordHash, "$6$") {
		t.Errorf("root = %+v, want one SSH key and a password hash", a.Root)
	}
}

func TestParseSmall(t *testing.T) {
	a, err := Parse(read(t, "small.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !a.Disk.Only || !a.Network.DHCP || a.Serial != "ttyS0" || a.After != Reboot {
		t.Errorf("answers with defaults = %+v, want the only disk, DHCP, ttyS0 and reboot", a)
	}
}

func TestPlaces(t *testing.T) {
	for text, want := range map[string]string{
		"STICK:/nvidia/": "/dev/disk/by-label/STICK:/nvidia", "STICK:nvidia/../x": "/dev/disk/by-label/STICK:/x", "STICK:": "/dev/disk/by-label/STICK:/",
		"/dev/sdb1:/../a": "/dev/sdb1:/a", "/dev/disk/by-path/pci-0:1.0-usb:/a": "/dev/disk/by-path/pci-0:1.0-usb:/a",
	} {
		p, err := ParsePlace(text)
		if err != nil || p.String() != want {
			t.Errorf("ParsePlace(%q) = %s, error %v; want %s", text, p, err, want)
		}
	}
}

// TestMistakes checks that every mistake in a file is reported, with its position.
func TestMistakes(t *testing.T) {
	_, err := Parse(read(t, "mistakes.yaml"))
	var ms strictyaml.Mistakes
	if !errors.As(err, &ms) {
		t.Fatalf("Parse = %v, want mistakes", err)
	}
	got := ms.Error() + "\n"
	if *update {
		if err := os.WriteFile("testdata/mistakes.golden", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(string(read(t, "mistakes.golden")), got); d != "" {
		t.Errorf("mistakes: mismatch (-want +got):\n%s", d)
	}
}

// TestOneMistake checks that each change of a valid file causes one mistake, at that
// field and line.
func TestOneMistake(t *testing.T) {
	good := string(read(t, "small.yaml"))
	for _, c := range []struct {
		old, new string
		line     int
		field    string
		says     string
	}{
		{"disk: only", "disk: /dev/sda", 1, "disk", "names no disk"},
		{"disk: only", "disk: {}", 1, "disk", "exactly one rule"},
		{"disk: only", "disk: {only: false}", 1, "disk.only", "names no disk"},
		{"disk: only", "disk: {only: true, serial: A}", 1, "disk", "exactly one rule"},
		{"disk: only", "disk: {size: 100}", 1, "disk.size", "not a range"},
		{"disk: only", "disk: {size: 2TiB..1GiB}", 1, "disk.size", "empty range"},
		{"disk: only", "disk: {serial: A}\nerase: B", 3, "erase", "given twice"},
		{"erase: yes-everything-on-it", "disk2: x\nerase: y", 2, "disk2", "unknown field"},
		{"disk: only", "disk: {serial: A}\nmirror: {serial: A}", 2, "mirror", "same disk"},
		{"disk: only", "disk: {byId: ata-A}\nmirror: {byId: /dev/disk/by-id/ata-A}", 2, "mirror", "same disk"},
		{"disk: only", "disk: only\nmirror: none", 2, "mirror", "names no disk"},
		{"disk: only", "disk: only\nmirror: {}", 2, "mirror", "exactly one rule"},
		{"yes-everything-on-it", "[]", 2, "erase", "names no disk"},
		{"yes-everything-on-it", "[A, B, C]", 2, "erase", "has 3 entries"},
		{"yes-everything-on-it", "B\nmirror: {serial: A}", 2, "erase", "not the serial in mirror.serial"},
		{"root:", "storage: {fileSystems: two}\nroot:", 6, "storage.fileSystems", "not a division"},
		{"root:", "storage: {fileSystems: {state: 16}}\nroot:", 6, "storage.fileSystems.state", "not a size"},
		{"root:", "storage: {fileSystems: {state: 1GiB}}\nroot:", 6, "storage.fileSystems.state", "too small"},
		{"root:", "storage: {fileSystems: {images: 1GiB}}\nroot:", 6, "storage.fileSystems.images", "unknown field"},
		{"root:", "gpuDriver: yes\nroot:", 6, "gpuDriver", "not a mapping"},
		{"root:", "gpuDriver: {packages: 'STICK:/nvidia'}\nroot:", 6, "gpuDriver.acceptNVIDIALicense", "is missing"},
		{"root:", "gpuDriver: {acceptNVIDIALicense: false}\nroot:", 6, "gpuDriver.acceptNVIDIALicense", "cannot be installed"},
		{"root:", "gpuDriver: {acceptNVIDIALicense: maybe}\nroot:", 6, "gpuDriver.acceptNVIDIALicense", "neither true nor false"},
		{"root:", "gpuDriver: {acceptNVIDIALicense: true, packages: /nvidia}\nroot:", 6, "gpuDriver.packages", "names no file or directory"},
		{"root:", "gpuDriver: {acceptNVIDIALicense: true, packages: 'a b:/nvidia'}\nroot:", 6, "gpuDriver.packages", "names no medium"},
		{"root:", "gpuDriver: {acceptNVIDIALicense: true, from: x}\nroot:", 6, "gpuDriver.from", "unknown field"},
		{"erase: yes-everything-on-it\n", "", 1, "erase", "is missing"},
		{"hostname: node1", "hostname: node1.example.net", 3, "hostname", "cannot be a name"},
		{"hostname: node1", "hostname: localhost", 3, "hostname", "every machine"},
		{"hostname: node1", "hostname: [node1]", 3, "hostname", "not a string"},
		{"address: dhcp", "address: 192.0.2.255/24", 4, "network.address", "broadcast"},
		{"address: dhcp", "address: 127.0.0.1/8", 4, "network.address", "cannot be a node's"},
		{"address: dhcp", "address: dhcp, gateway: 192.0.2.1", 4, "network.gateway", "comes with DHCP"},
		{"address: dhcp", "address: 192.0.2.2/24, gateway: 198.51.100.1", 4, "network.gateway", "cannot be reached"},
		{"address: dhcp", "address: 192.0.2.2/24, second: {interface: eno1, address: dhcp}", 4, "network.second", "same card"},
		{"address: dhcp", "address: 192.0.2.2/24, second: {interface: eno2, address: 192.0.2.3/25}", 4, "network.second", "one network"},
		{"interface: eno1", "interface: ../x", 4, "network.interface", "not a network card"},
		{"interface: eno1", "mac: 52:54", 4, "network.mac", "not a MAC"},
		{"init: basalt", "join: hello", 5, "cluster.join", "begins with"},
		{"init: basalt", "join: bslt-join-e30", 5, "cluster.join", "version 0"},
		{"password: correct horse", "password: short", 6, "root.password", "5 characters"},
		{"password: correct horse", "passwordHash: plain", 6, "root.passwordHash", "not a password hash"},
		{"password: correct horse", "sshKeys: [ssh-rsa AAAAC3NzaC1lZDI1NTE5]", 6, "root.sshKeys[0]", "no SSH key"},
		{"root: {password: correct horse}", "root: {}", 6, "root", "nobody could sign in"},
		{"disk: only", "disk: &d only\nafter: *d", 2, "after", "another place"},
		{"disk: only", "\tdisk: only", 1, "", "not valid YAML"},
		{"root:", "console: {serial: com1}\nroot:", 6, "console.serial", "not a serial console"},
		{"root:", "storage: {sharedDir: srv}\nroot:", 6, "storage.sharedDir", "not an absolute path"},
		{"root:", "storage: {sharedDir: \"nfs://nas\"}\nroot:", 6, "storage.sharedDir", "not an export of an NFS server"},
		{"root:", "storage: {sharedDir: /etc}\nroot:", 6, "storage.sharedDir", "belongs to the system"},
		{"root:", "---\nroot:", 6, "", "second document"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		_, err := Parse([]byte(text))
		var ms strictyaml.Mistakes
		if !errors.As(err, &ms) {
			t.Errorf("%s: Parse = %v, want mistakes", c.new, err)
			continue
		}
		found := false
		for _, m := range ms {
			found = found || m.Field == c.field && m.Line == c.line && strings.Contains(m.Reason, c.says)
		}
		if !found {
			t.Errorf("%q: want a mistake at %s, line %d (%s), got\n%s", c.new, c.field, c.line, c.says, ms)
		}
	}
}

func token(body string) string {
	return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(body))
}

func TestParseToken(t *testing.T) {
	ca := strings.Repeat("ab", 32)
	good := token(`{"v":1,"cluster":"basalt","ca":"` + ca + `","peers":["192.0.2.11:7481"],"id":"jt-1","secret":"s"}`)
	if tok, err := ParseToken(" " + good[:20] + "\n" + good[20:] + "\n"); err != nil || tok.Cluster != "basalt" {
		t.Errorf("ParseToken with white space = %+v, %v; want cluster basalt", tok, err)
	}
	for _, bad := range []string{
		"", "bslt-join-", good[:len(good)-4], token(`{"v":2}`), token(`{"v":1,"ca":"` + ca + `","id":"x","secret":"s"}`),
		token(`{"v":1,"ca":"` + ca + `","id":"x","secret":"s","peers":["nowhere"]}`), good + strings.Repeat("A", maxToken),
	} {
		if _, err := ParseToken(bad); err == nil {
			t.Errorf("ParseToken(%q) succeeded, want an error", strictyaml.Clip(bad))
		}
	}
}

func FuzzAnswers(f *testing.F) {
	for _, name := range []string{"full.yaml", "small.yaml", "mistakes.yaml"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("disk: {serial: A}\nmirror: {serial: B}\nerase: [A, B]\nstorage: {fileSystems: one}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Parse(data)
		var ms strictyaml.Mistakes
		switch {
		case err == nil && (len(a.Erase) == 0 || a.Hostname == "" || (a.Cluster.Init == "") == (a.Cluster.Token == "")):
			t.Fatalf("incomplete answers are accepted: %+v", a)
		case err != nil && !errors.As(err, &ms):
			t.Fatalf("Parse = %v, want mistakes", err)
		}
		for _, m := range ms {
			if m.Line < 1 || m.Column < 1 || m.Reason == "" {
				t.Fatalf("mistake %+v has no position or reason", m)
			}
		}
	})
}
