package tui

import (
	"encoding/base64"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/machine"
	"github.com/basalt-gpu/basalt/installer/machine/network"

	tea "github.com/charmbracelet/bubbletea"
)

var update = flag.Bool("update", false, "write the golden files")

// screen compares the screen of 80 by 24 characters with a golden file.
func (p *person) screen(name string) {
	p.t.Helper()
	got := p.m.View()
	lines := strings.Split(got, "\n")
	if len(lines) != 24 {
		p.t.Errorf("screen %s has %d lines, want 24", name, len(lines))
	}
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > 79 {
			p.t.Errorf("screen %s: line %d has %d columns, want at most 79", name, i+1, w)
		}
		lines[i] = strings.TrimRight(l, " ")
	}
	got = strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", name+".screen")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		p.t.Errorf("screen %s: mismatch (-want +got):\n%s", name, d)
	}
}

const sshKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBR5bZVuT2cQp0j0bWv0yq6xq7v1Rr0vR4r0c2q6u1aB me@example.net"

func token() string {
	return "bslt-join-" + base64.RawURLEncoding.EncodeToString([]byte(`{"v":1,"cluster":"basalt","ca":"`+strings.Repeat("ab", 32)+`","peers":["192.0.2.11:7481"],"id":"jt-1","secret":"s"}`))
}

// TestTheWholeWay walks through the whole installation like a user.
func TestTheWholeWay(t *testing.T) {
	f := newFake()
	p := sit(t, f)
	p.screen("1-welcome")
	p.types("<enter>")
	p.screen("2-hardware")
	p.types("<enter>")
	p.screen("2-disk")
	p.types("<enter>", "S45P")
	p.types("<enter>")
	p.sees("That is not S45PNA0M500001. Nothing is erased.")
	p.screen("2-disk-wrong")
	p.types("NA0M500001", "<enter>")
	p.screen("2-mirror")
	p.types("<up>", "<enter>")
	p.sees("this is the medium", "Choose another disk")
	p.types("<down>", "<enter>", "erase-vda", "<enter>")
	p.screen("3-network")
	p.types("<down>", "<right>", "<enter>", "192.0.2.11", "<enter>", "<enter>", "<enter>", "<enter>", "<enter>")
	p.sees(`"192.0.2.11" has no prefix length`, "192.0.2.11/24")
	p.types("/24", "<enter>", "192.0.2.1", "<enter>", "192.0.2.53", "<enter>", "<right>", "<enter>", "<right>", "<enter>", "198.51.100.11/24", "<enter>", "<right>", "<enter>")
	p.screen("3-network-works")
	p.types("<enter>")
	p.types("node1", "<enter>", "<enter>", "<enter>")
	p.types("correct horse", "<enter>", "correct horsf", "<enter>", "<enter>")
	p.sees("the two passwords are not the same")
	p.types("<backspace>", "e", "<enter>", "ssh-rsa broken", "<enter>")
	p.sees("is no SSH key")
	p.types("<ctrl+u>", sshKey, "<enter>")
	p.screen("5-access")
	p.types("<enter>")
	p.screen("6-summary")
	p.types("<enter>") // only i installs
	if len(f.installed) != 0 {
		t.Fatal("Enter on the summary installed, want only i to")
	}
	p.types("i")
	p.screen("8-end")
	if len(f.installed) != 1 {
		t.Fatalf("%d installations, want 1", len(f.installed))
	}
	r := f.installed[0]
	if r.Mirror == nil || r.Mirror.Path != "/dev/vda" {
		t.Errorf("mirror = %+v, want /dev/vda", r.Mirror)
	}
	if r.Disk.Serial != "S45PNA0M500001" || r.Answers.Hostname != "node1" || r.Answers.Cluster.Init != "basalt" || r.Answers.Root.Password != "correct horse" ||
		len(r.Answers.Root.SSHKeys) != 1 || r.Main.Address.String() != "192.0.2.11/24" || r.Second == nil || r.Second.Card != "eno2" || r.Answers.Network.Second == nil || !r.Answers.Network.External {
		t.Errorf("installation = %+v, want the values entered on the pages", r)
	}
}

// TestTheSecondCardIsAnother checks that the main card is never offered as the second
// one.
func TestTheSecondCardIsAnother(t *testing.T) {
	f := newFake()
	f.nics = append(f.nics, machine.NIC{Name: "eno3", MAC: "52:54:00:00:00:13", Driver: "igb"})
	p := newNetworkPage()
	p.found(nicsMsg{nics: f.nics})
	offered := func() (all []string) {
		for _, c := range p.second.choices {
			all = append(all, strings.Fields(c)[0])
		}
		return all
	}
	for card, want := range [][]string{{"none", "eno2", "eno3"}, {"none", "eno1", "eno3"}, {"none", "eno1", "eno2"}} {
		p.card.chosen = card
		p.arrange()
		if d := cmp.Diff(want, offered()); d != "" {
			t.Errorf("second cards beside %s: mismatch (-want +got):\n%s", f.nics[card].Name, d)
		}
	}
	p.second.chosen = 2 // eno2
	p.card.chosen = 0
	p.arrange()
	if got := offered()[p.second.chosen]; got != "eno2" {
		t.Errorf("second card after the main card changed = %s, want eno2", got)
	}
	p.card.chosen = 1
	p.arrange()
	if p.second.chosen != 0 {
		t.Error("the main card is also the second one, want none chosen")
	}
}

// TestFailedHardware checks that a computer without KVM is installed only after a
// confirmation.
func TestFailedHardware(t *testing.T) {
	f := newFake()
	f.hardware[0] = api.HardwareCheck{ID: api.HardwareKVM, State: api.HardwareFailed, Found: "the processor shows no extension for virtual machines: it is off in the firmware, or there is none",
		Meaning: "No instances are placed on this node: without KVM they would be emulated, which is many times slower.",
		Advice:  "In the firmware's setup, under CPU or Security, enable Intel Virtualization Technology (VT-x), then switch the machine off and on."}
	p := sit(t, f)
	p.types("<enter>", "<enter>")
	p.sees("> failed   kvm", "A node does not work on this hardware.")
	p.screen("2-hardware-failed")
	p.types("<down>")
	p.sees("intel_iommu=on")
	p.types("<down>", "<down>", "<down>")
	p.sees("> unknown  disks", "smartmontools")
	f.hardware = f.hardware[3:]
	p.types("r")
	p.sees("All 0 checks passed.")
	p.types("<esc>")
	p.sees("This makes the computer a Basalt node.")
	p.types("<enter>", "<enter>")
	p.sees("[Disk]")
	p = sit(t, &fake{hardware: []api.HardwareCheck{{ID: api.HardwareKVM, State: api.HardwareFailed, Found: "none"}}})
	p.types("<enter>", "<enter>", "g")
	p.sees("[Disk]")
}

func (p *person) toNetwork() {
	p.types("<enter>", "<enter>", "<enter>", "S45PNA0M500001", "<enter>", "n")
}

// toCluster proceeds to the cluster page, using DHCP.
func (p *person) toCluster() {
	p.toNetwork()
	p.types("<enter>", "<enter>", "<enter>", "<enter>", "<enter>")
}

func (p *person) toSummary() {
	p.toCluster()
	p.types("node1", "<enter>", "<enter>", "<enter>", "correct horse", "<enter>", "correct horse", "<enter>", "<enter>")
}

func TestBusyDiskCannotBeChosen(t *testing.T) {
	p := sit(t, newFake())
	p.types("<enter>", "<enter>", "<down>", "<enter>")
	p.sees("Cannot be chosen: this is the medium", "Choose another disk")
	p.screen("2-disk-busy")
	p.types("<down>", "<enter>")
	p.sees("Type erase-vda to have it erased") // it has no serial
}

// TestMirrorCandidates checks that neither the chosen disk nor a removable one can mirror
// it.
func TestMirrorCandidates(t *testing.T) {
	m := &Model{}
	m.request.Disk = machine.Disk{Path: "/dev/sda"}
	got := m.candidates([]machine.Disk{{Path: "/dev/sda"}, {Path: "/dev/sdb", Removable: true}, {Path: "/dev/sdc"}})
	if len(got) != 2 || got[0].Refusal == nil || got[1].Path != "/dev/sdc" || got[1].Refusal != nil {
		t.Errorf("candidates = %+v, want /dev/sdb refused and /dev/sdc", got)
	}
}

func TestNodeOnTheDiskIsNamed(t *testing.T) {
	f := newFake()
	f.disks[0].Node = true
	p := sit(t, f)
	p.types("<enter>", "<enter>")
	p.sees("a finished Basalt node, with the disks of its machines")
	p.types("<down>")
	p.seesNot("a finished Basalt node")
}

func TestNoDisk(t *testing.T) {
	f := newFake()
	f.disks = nil
	p := sit(t, f)
	p.types("<enter>", "<enter>", "<enter>", "<down>", "<up>")
	p.sees("The kernel has found no disk.", "press r")
	f.disks = newFake().disks
	p.types("r")
	p.sees("S45PNA0M500001")
}

func TestAddressInUse(t *testing.T) {
	f := newFake()
	f.duplicate = "192.0.2.11"
	p := sit(t, f)
	p.toNetwork()
	p.types("<down>", "<right>", "<enter>", "192.0.2.11/24", "<enter>", "<enter>", "<enter>", "<enter>", "<enter>")
	p.screen("3-network-duplicate")
	p.types("<enter>") // repeats the check instead of continuing
	p.sees("is in use by")
	p.types("<up>", "<up>", "<up>", "<up>", "<backspace>", "<backspace>", "<backspace>", "<backspace>", "12/24", "<down>", "<down>", "<down>", "<down>", "<enter>")
	p.sees("The network works.")
}

// TestChangeAfterTheTest checks that only a tested network is installed: a change after
// the test must be tested again.
func TestChangeAfterTheTest(t *testing.T) {
	p := sit(t, newFake())
	p.toNetwork()
	p.types("<enter>", "<enter>", "<enter>", "<enter>")
	p.sees("The network works, except for what is marked !!.") // DHCP causes a warning
	p.types("<up>", "<right>")
	p.seesNot("It works")
}

// TestOnlyCardIsShared checks that external networks share a computer's only card unless
// somebody chooses otherwise, which is kept when the cards are listed again.
func TestOnlyCardIsShared(t *testing.T) {
	p := newNetworkPage()
	one := nicsMsg{nics: newFake().nics[:1]}
	p.found(one)
	if w, _, err := p.read(); err != nil || !w.External {
		t.Errorf("with one card: external networks share it = %v, error %v; want true", w.External, err)
	}
	p.external.chosen = 0
	p.found(one)
	if w, _, _ := p.read(); w.External {
		t.Error("after it was unset, external networks share the card = true, want false")
	}
	p = newNetworkPage()
	p.found(nicsMsg{nics: newFake().nics})
	if w, _, _ := p.read(); w.External {
		t.Error("with two cards: external networks share one = true, want false")
	}
}

func TestJoin(t *testing.T) {
	f := newFake()
	f.reach = []network.Check{{Outcome: network.Failure, Text: "no member of the cluster can be reached", Hint: "check the network"}}
	p := sit(t, f)
	p.toCluster()
	p.types("node2", "<enter>", "<right>", "<enter>", "bslt-join-abc", "<enter>")
	p.sees("the join token is damaged or not complete")
	p.types("<ctrl+u>", token(), "<enter>")
	p.screen("4-join-unreachable")
	f.reach = newFake().reach
	p.types("<enter>")
	p.sees("The cluster can be joined.")
	p.types("<enter>")
	p.sees("Root access")
}

// TestBackKeepsInput checks that going back and forth loses no input.
func TestBackKeepsInput(t *testing.T) {
	f := newFake()
	p := sit(t, f)
	p.toSummary()
	p.types("<esc>")
	p.sees("*************") // the password
	p.types("<esc>")
	p.sees("node1")
	p.types("<esc>", "<esc>", "<esc>", "<esc>", "<esc>", "<esc>")
	p.sees("Welcome")
	p.types("<enter>", "<enter>", "<enter>", "<enter>", "n", "<enter>")
	p.sees("The node and its cluster", "node1")
	p.types("<enter>", "<enter>")
	p.sees("Installation summary")
}

// TestDiskIsAskedForAgain checks that a disk that is removed while the user is on
// another page is not erased.
func TestDiskIsAskedForAgain(t *testing.T) {
	f := newFake()
	p := sit(t, f)
	p.toSummary()
	f.disks = f.disks[1:]
	p.types("<esc>", "<esc>", "<esc>", "<esc>", "<esc>", "<enter>")
	p.sees("Type erase-vda")
	p.types("<enter>")
	p.sees("That is not erase-vda")
}

func TestFailureAndAgain(t *testing.T) {
	f := newFake()
	f.fail = api.Errorf(api.CodeInternal, "could not copy the system: unsquashfs: exit status 1: read error").WithHint("the medium or the disk may be damaged: compare the medium's SHA-256, then try another medium or disk")
	p := sit(t, f)
	p.toSummary()
	p.types("i")
	p.screen("7-failed")
	f.fail = nil
	p.types("r")
	p.sees("The node is installed")
	p.types("<enter>")
}

func TestStopping(t *testing.T) {
	f := newFake()
	f.fail = errHang
	p := sit(t, f)
	p.toSummary()
	_, cmd := p.m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("i")})
	page := p.m.pages[p.m.at].(*progressPage)
	listen := cmd
	for page.now.Fraction != 0.43 {
		_, next := p.m.Update(listen())
		listen = next
	}
	p.screen("7-progress")
	p.types("<ctrl+c>")
	p.screen("7-leave")
	p.types("<esc>", "<ctrl+c>", "x")
	p.do(listen)
	if page.running() || page.failed == nil {
		t.Fatalf("installation is running = %v, error %v after it was stopped; want a failure", page.running(), page.failed)
	}
}

func TestOverlays(t *testing.T) {
	p := sit(t, newFake())
	p.types("<enter>", "<enter>", "?")
	p.screen("help")
	p.types("<esc>", "<f3>")
	p.sees("last line")
	p.seesNot("\x1b[31m")
	p.types("<esc>", "<ctrl+c>")
	p.sees("Nothing has been changed")
	p.types("z", "<esc>")
	p.sees("Select the disk")
	// In a text field, ? is an ordinary character.
	p.types("<enter>", "?")
	p.sees("> ?")
}

func TestEnd(t *testing.T) {
	f := newFake()
	p := sit(t, f)
	p.types("<ctrl+c>")
	_, cmd := p.m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("p")})
	if cmd == nil || p.m.leave != answers.PowerOff {
		t.Fatalf("key p requests %q, want %q", p.m.leave, answers.PowerOff)
	}
}

func TestStrength(t *testing.T) {
	for s, want := range map[string]string{"short": "too short", "aaaaaaaaaaaa": "weak", "password": "weak", "password1234": "fair", "correct horse battery": "strong"} {
		if got, _ := strength(s); got != want {
			t.Errorf("strength of %s = %s, want %s", s, got, want)
		}
	}
}

// TestSizes checks that a serial line without a size gets 80 by 24, and that a small
// window does not cause a crash.
func TestSizes(t *testing.T) {
	p := sit(t, newFake())
	for _, size := range []tea.WindowSizeMsg{{}, {Width: 20, Height: 5}, {Width: 200, Height: 60}} {
		p.m.Update(size)
		if got := strings.Count(p.m.View(), "\n") + 1; got < 24 || size.Height > 24 && got != size.Height {
			t.Errorf("screen of size %v has %d lines", size, got)
		}
	}
}

// FuzzKeys checks that no sequence of keys causes a panic, or an installation without
// typing the serial.
func FuzzKeys(f *testing.F) {
	names := []string{"<enter>", "<esc>", "<tab>", "<up>", "<down>", "<left>", "<right>", "<f1>", "<f3>", "<ctrl+c>", "<ctrl+u>", "<backspace>", "i", "r", "x", "?", "1", ".", "/", "a"}
	f.Add([]byte{0, 0, 0, 12, 12})
	f.Add([]byte{0, 4, 0, 1, 9, 14, 0})
	f.Fuzz(func(t *testing.T, keys []byte) {
		sys := newFake()
		p := sit(t, sys)
		for _, k := range keys[:min(len(keys), 200)] {
			p.types(names[int(k)%len(names)])
			p.m.View()
		}
		if len(sys.installed) != 0 {
			t.Fatal("installed without the typed confirmation, want none")
		}
	})
}

// TestPastedWord checks that a pasted word is text, even if a key has that name.
func TestPastedWord(t *testing.T) {
	p := newAccessPage()
	m := &Model{pages: []page{p}}
	p.enter(m)
	for _, word := range []string{"down", " ", "home", " ", "esc"} {
		m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(word)})
	}
	if got := p.password.value(); got != "down home esc" {
		t.Errorf("pasted text = %q, want %q", got, "down home esc")
	}
}
