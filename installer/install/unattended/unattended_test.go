package unattended

import (
	"context"
	"flag"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/hardware"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/install"
	"github.com/basalt-gpu/basalt/installer/machine"
	"github.com/basalt-gpu/basalt/installer/machine/network"
)

var update = flag.Bool("update", false, "write the golden files")

type fake struct {
	disks     []machine.Disk
	check     network.Check
	fail      error
	installed []install.Request
	gpus      []hardware.GPU
}

func (f *fake) Disks(context.Context) ([]machine.Disk, error) { return f.disks, nil }
func (f *fake) NICs(context.Context) ([]machine.NIC, error) {
	return []machine.NIC{{Name: "eno1", MAC: "52:54:00:00:00:01"}, {Name: "eno2", MAC: "52:54:00:00:00:02"}}, nil
}
func (f *fake) Try(_ context.Context, _ string, nic machine.NIC, p answers.Path, _ netip.Addr, _ []netip.Addr) (network.Up, []network.Check) {
	up := network.Up{Card: nic.Name, MAC: nic.MAC, Address: p.Address}
	if p.DHCP {
		up.Address = netip.MustParsePrefix("192.0.2.77/24")
	}
	return up, []network.Check{{Outcome: network.OK, Text: nic.Name + " has a link"}, f.check}
}
func (f *fake) TryDeclared(_ context.Context, n *hostnet.Network) ([]network.Up, []network.Check) {
	var ups []network.Up
	for _, l := range n.WithRole(hostnet.Management) {
		ups = append(ups, network.Up{Card: l.Name, Address: l.Static[0]})
	}
	return ups, []network.Check{f.check}
}
func (f *fake) GPUs() []hardware.GPU                                 { return f.gpus }
func (f *fake) Reach(context.Context, answers.Token) []network.Check { return nil }
func (f *fake) Install(_ context.Context, r install.Request, progress func(install.Progress)) error {
	f.installed = append(f.installed, r)
	progress(install.Progress{Step: 0, Steps: 2, ID: "check", Text: "Look at the disk a last time", Fraction: -1})
	for _, fraction := range []float64{-1, 0, 0.05, 0.12, 0.19, 0.5, 1} {
		progress(install.Progress{Step: 1, Steps: 2, ID: "unpack", Text: "Copy the system", Fraction: fraction, Bytes: 1 << 30})
	}
	return f.fail
}

const file = `disk: only
erase: A
hostname: node1
network: {interface: eno1, address: dhcp, second: {mac: "52:54:00:00:00:02", address: 198.51.100.11/24}}
cluster: {init: basalt}
root: {password: correct horse}
after: poweroff
`

func good() *fake {
	return &fake{disks: []machine.Disk{{Path: "/dev/sda", Serial: "A", SizeBytes: 100 << 30}}, check: network.Check{Outcome: network.Warning, Text: "no DNS", Hint: "give one"}}
}

func TestRun(t *testing.T) {
	f := good()
	var out strings.Builder
	after, err := Run(context.Background(), f, []byte(file), &out)
	if err != nil || after != answers.PowerOff || len(f.installed) != 1 || f.installed[0].Second == nil {
		t.Fatalf("Run = %s, %v with installations %+v; want %s and one with a second card", after, err, f.installed, answers.PowerOff)
	}
	if *update {
		if err := os.WriteFile("testdata/run.golden", []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/run.golden")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Errorf("output: mismatch (-want +got):\n%s", d)
	}
}

// TestDeclaredNetwork checks that a declared network is installed unchanged, and that
// its links for management are the paths.
func TestDeclaredNetwork(t *testing.T) {
	f := good()
	text := strings.Replace(file, `network: {interface: eno1, address: dhcp, second: {mac: "52:54:00:00:00:02", address: 198.51.100.11/24}}`,
		"network:\n  cards: [{name: eno1}, {name: eno2}]\n  bonds: [{name: bond0, cards: [eno1, eno2], mode: 802.3ad, addresses: 192.0.2.11/24, gateway: 192.0.2.1, roles: management}]", 1)
	if _, err := Run(t.Context(), f, []byte(text), io.Discard); err != nil {
		t.Fatal(err)
	}
	if r := f.installed[0]; r.Main.Card != "bond0" || r.Main.Address.String() != "192.0.2.11/24" || r.Second != nil || r.Answers.Network.Declared == nil {
		t.Errorf("installed with %+v, want only bond0 with 192.0.2.11/24", r)
	}
}

// TestDriverNeedsAGPU checks that one answer file serves computers with and without GPUs.
func TestDriverNeedsAGPU(t *testing.T) {
	text := file + "gpuDriver: {acceptNVIDIALicense: true}\n"
	for _, gpus := range [][]hardware.GPU{nil, {{Address: "0000:65:00.0"}}} {
		f := good()
		f.gpus = gpus
		var out strings.Builder
		if _, err := Run(t.Context(), f, []byte(text), &out); err != nil {
			t.Fatal(err)
		}
		if got := f.installed[0].Answers.GPUDriver != nil; got != (len(gpus) > 0) || strings.Contains(out.String(), "no NVIDIA GPU") == got {
			t.Errorf("with GPUs %v: driver requested: %v, output\n%s", gpus, got, out.String())
		}
	}
}

// TestNothingIsTouched checks that nothing is installed if anything before it fails,
// and that the lines give the reason.
func TestNothingIsTouched(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fake)
		file   string
		says   string
	}{
		"mistake":     {nil, strings.Replace(file, "hostname", "hostnam", 1), "did you mean hostname?"},
		"other disk":  {func(f *fake) { f.disks[0].Serial = "B" }, file, `erase allows "A"`},
		"no disk":     {func(f *fake) { f.disks = nil }, file, "no disk here fits"},
		"a node":      {func(f *fake) { f.disks[0].Node = true }, file, "reinstall: true"},
		"no card":     {nil, strings.Replace(file, "eno1", "eno7", 1), "there is no card eno7"},
		"same card":   {nil, strings.Replace(file, "52:54:00:00:00:02", "52:54:00:00:00:01", 1), "same card"},
		"no network":  {func(f *fake) { f.check = network.Check{Outcome: network.Failure, Text: "192.0.2.1 is in use"} }, file, "is in use"},
		"wrong token": {nil, strings.Replace(file, "init: basalt", "join: bslt-join-x", 1), "damaged"},
	} {
		f := good()
		if c.change != nil {
			c.change(f)
		}
		var out strings.Builder
		_, err := Run(context.Background(), f, []byte(c.file), &out)
		if err == nil || len(f.installed) != 0 {
			t.Errorf("%s: error %v and %d installations, want an error and none", name, err, len(f.installed))
			continue
		}
		var lines strings.Builder
		Explain(err, &lines)
		if !strings.Contains(lines.String(), "FAILED") || !strings.Contains(lines.String(), c.says) {
			t.Errorf("%s: lines = %s, want FAILED and %q", name, lines.String(), c.says)
		}
	}
}

func TestFailedInstallation(t *testing.T) {
	f := good()
	f.fail = api.Errorf(api.CodeInternal, "could not copy the system").WithHint("try another medium")
	_, err := Run(context.Background(), f, []byte(file), &strings.Builder{})
	var lines strings.Builder
	Explain(err, &lines)
	if lines.String() != Prefix+"FAILED: could not copy the system\n"+Prefix+"  what to do: try another medium\n" {
		t.Errorf("lines of a failed step = %q, want the failure and what to do", lines.String())
	}
}
