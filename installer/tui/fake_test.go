package tui

import (
	"context"
	"errors"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/hardware"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/install"
	"github.com/basalt-gpu/basalt/installer/machine"
	"github.com/basalt-gpu/basalt/installer/machine/network"
)

// fake is a machine with two disks that can be chosen, one that cannot, and two cards.
type fake struct {
	disks     []machine.Disk
	nics      []machine.NIC
	duplicate string // an address that another machine has
	reach     []network.Check
	fail      error // error of the installation
	installed []install.Request
	ended     []answers.After
	hardware  []api.HardwareCheck
	gpus      []hardware.GPU
	packages  error // of CheckPackages
}

func newFake() *fake {
	return &fake{
		disks: []machine.Disk{
			{Path: "/dev/sda", Model: "SAMSUNG MZ7LH480HAHQ-00005", Serial: "S45PNA0M500001", SizeBytes: 480103981056, Transport: "sata", SSD: true,
				Contents: []string{"sda1 512 MiB vfat (EFI System)", "sda2 447 GiB ext4 \"debian\""}},
			{Path: "/dev/sdb", Model: "Ultra Fit", Serial: "4C530001", SizeBytes: 8010194432, Transport: "usb",
				Refusal: &machine.Refusal{Reason: "this is the medium that the installer runs from (/run/live/medium)", Hint: "choose another disk"}},
			{Path: "/dev/vda", SizeBytes: 21474836480, Transport: "virtio"},
		},
		nics: []machine.NIC{
			{Name: "eno1", MAC: "52:54:00:00:00:01", Driver: "ixgbe", Link: true, SpeedMbit: 10000},
			{Name: "eno2", MAC: "52:54:00:00:00:02", Driver: "ixgbe"},
		},
		hardware: []api.HardwareCheck{
			{ID: api.HardwareKVM, State: api.HardwareOK, Found: "KVM works: Intel VT-x"},
			{ID: api.HardwareIOMMU, State: api.HardwareWarning, Found: "the firmware has one (ACPI table DMAR), and the kernel does not use it",
				Meaning: "A device, or its driver, can write anywhere in the machine's memory.", Advice: "Add intel_iommu=on to the kernel's command line."},
			{ID: api.HardwareDisks, State: api.HardwareUnknown, Found: "smartctl is not installed", Advice: "apt-get install smartmontools"},
			{ID: api.HardwareClock, State: api.HardwareWarning, Found: "not synchronized with a time server", Meaning: "It drifts.", Advice: "See timedatectl."},
		},
		reach: []network.Check{{Outcome: network.OK, Text: "192.0.2.11:7481 is a member of the cluster"}},
	}
}

func (f *fake) Disks(context.Context) ([]machine.Disk, error)      { return f.disks, nil }
func (f *fake) NICs(context.Context) ([]machine.NIC, error)        { return f.nics, nil }
func (f *fake) Hardware(context.Context) []api.HardwareCheck       { return f.hardware }
func (f *fake) GPUs() []hardware.GPU                               { return f.gpus }
func (f *fake) CheckPackages(context.Context, answers.Place) error { return f.packages }
func (f *fake) Log() string                                        { return "first line\n\x1b[31mlast line\n" }
func (f *fake) Shell() *exec.Cmd                                   { return exec.Command("true") }
func (f *fake) End(a answers.After) error                          { f.ended = append(f.ended, a); return nil }

func (f *fake) Try(_ context.Context, _ string, nic machine.NIC, p answers.Path, gateway netip.Addr, dns []netip.Addr) (network.Up, []network.Check) {
	up := network.Up{Card: nic.Name, MAC: nic.MAC, Address: p.Address, Gateway: gateway, DNS: dns}
	checks := []network.Check{{Outcome: network.OK, Text: nic.Name + " has a link"}}
	switch {
	case p.DHCP:
		up.Address = netip.MustParsePrefix("192.0.2.77/24")
		return up, append(checks, network.Check{Outcome: network.Warning, Text: "the others will know the node by this address", Hint: "reserve it"})
	case p.Address.Addr().String() == f.duplicate:
		return up, append(checks, network.Check{Outcome: network.Failure, Text: f.duplicate + " is in use by 02:00:00:00:00:09", Hint: "choose another address, or switch that machine off"})
	}
	return up, append(checks, network.Check{Outcome: network.OK, Text: p.Address.Addr().String() + " is free"})
}

func (f *fake) Reach(context.Context, answers.Token) []network.Check { return f.reach }

func (f *fake) Install(ctx context.Context, r install.Request, progress func(install.Progress)) error {
	f.installed = append(f.installed, r)
	for i, s := range install.Plan(install.Job{Request: r, Target: install.Target, IDs: install.NewIDs([36]byte{})}) {
		progress(install.Progress{Step: i, Steps: 10, ID: s.ID, Text: s.Text, Fraction: -1})
		if s.ID == "unpack" {
			progress(install.Progress{Step: i, Steps: 10, ID: s.ID, Text: s.Text, Fraction: 0.43, Bytes: 645 << 20, Total: 1500 << 20})
			if f.fail != nil {
				if errors.Is(f.fail, errHang) {
					<-ctx.Done()
					return ctx.Err()
				}
				return f.fail
			}
		}
	}
	progress(install.Progress{Step: 10, Steps: 10, Text: "Complete", Fraction: 1, Done: true})
	return nil
}

// errHang makes the fake's installation wait until it is canceled.
var errHang = errors.New("hang")

// person simulates a user: it sends keys, and checks the screen.
type person struct {
	t *testing.T
	m *Model
}

func sit(t *testing.T, sys System) *person {
	t.Helper()
	lipgloss.SetColorProfile(termenv.Ascii)
	m := New(sys, Options{Version: "v1", Now: func() time.Time { return time.Unix(0, 0) }})
	m.tick = nil
	p := &person{t, m}
	p.do(m.Init())
	return p
}

// do runs a command and those that follow from it, one after the other.
func (p *person) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	msg := cmd()
	if batch, ok := msg.(tea.BatchMsg); ok {
		for _, c := range batch {
			p.do(c)
		}
		return
	}
	// Messages of tea.Sequence and tea.ExecProcess are internal to bubbletea.
	if msg != nil {
		_, next := p.m.Update(msg)
		p.do(next)
	}
}

var special = map[string]tea.KeyType{
	"<enter>": tea.KeyEnter, "<esc>": tea.KeyEsc, "<tab>": tea.KeyTab, "<up>": tea.KeyUp, "<down>": tea.KeyDown, "<left>": tea.KeyLeft,
	"<right>": tea.KeyRight, "<f1>": tea.KeyF1, "<f3>": tea.KeyF3, "<ctrl+c>": tea.KeyCtrlC, "<ctrl+u>": tea.KeyCtrlU, "<backspace>": tea.KeyBackspace,
}

// types sends keys: names in <>, everything else as it is.
func (p *person) types(keys ...string) {
	p.t.Helper()
	for _, k := range keys {
		if kind, ok := special[k]; ok {
			_, cmd := p.m.Update(tea.KeyMsg{Type: kind})
			p.do(cmd)
			continue
		}
		for _, r := range k {
			_, cmd := p.m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
			p.do(cmd)
		}
	}
}

func (p *person) sees(words ...string) {
	p.t.Helper()
	for _, w := range words {
		if !strings.Contains(p.m.View(), w) {
			p.t.Fatalf("screen lacks %q:\n%s", w, p.m.View())
		}
	}
}

func (p *person) seesNot(words ...string) {
	p.t.Helper()
	for _, w := range words {
		if strings.Contains(p.m.View(), w) {
			p.t.Fatalf("screen contains %q, want it absent:\n%s", w, p.m.View())
		}
	}
}
