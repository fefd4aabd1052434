package gpud

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// machine is a simulated machine: a directory tree like the kernel's, and a driver that
// lists the cards that the test sets.
type machine struct {
	t      *testing.T
	root   string
	cards  []string // addresses of the cards that the driver lists
	failed error    // error of the driver when it does not respond
	opened int
	ran    int // number of runs of the program that loads nvidia-uvm
}

func newMachine(t *testing.T) (*machine, *finder) {
	m := &machine{t: t, root: t.TempDir()}
	return m, &finder{
		root: m.root,
		open: func() (driver, error) {
			m.opened++
			if m.failed != nil {
				return nil, m.failed
			}
			return &listing{m, append([]string(nil), m.cards...)}, nil
		},
		prepare: func(context.Context) error { m.ran++; return errors.New("there is no nvidia-modprobe") },
	}
}

// listing is a driver that lists the cards that existed when it was opened, as
// NVML does.
type listing struct {
	m      *machine
	listed []string
}

func (l *listing) cards() (all []cardInfo, errs []error) {
	for _, a := range l.listed {
		all = append(all, cardInfo{ID: sched.GPUID("GPU-" + a), Address: a, Driver: wire.DriverCUDA, VRAM: 8 << 30})
	}
	return all, nil
}

func (l *listing) sensors(sched.GPUID) sensors { return sensors{celsius: 40} }
func (l *listing) settings(int) error          { return nil }
func (l *listing) close()                      {}

func (m *machine) file(path, content string) {
	m.t.Helper()
	path = filepath.Join(m.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// plug adds a device to the bus; class is in the kernel's format.
func (m *machine) plug(address, vendor, class, driver string) {
	m.t.Helper()
	dir := "sys/bus/pci/devices/" + address
	m.file(dir+"/vendor", vendor+"\n")
	m.file(dir+"/class", class+"\n")
	link := filepath.Join(m.root, dir, "driver")
	_ = os.Remove(link)
	if driver == "" {
		return
	}
	if err := os.Symlink("../../../../bus/pci/drivers/"+driver, link); err != nil {
		m.t.Fatal(err)
	}
}

const (
	nvidiaID = "0x10de"
	display  = "0x030200"
)

// TestUnusableCards checks that each card on the bus that cannot be used has a
// reason with a hint how to proceed.
func TestUnusableCards(t *testing.T) {
	const a, b = "0000:65:00.0", "0000:66:00.0"
	for name, c := range map[string]struct {
		plug   func(m *machine)
		want   []string // part of the reason, by card in order
		cards  int
		loaded int // attempts to load nvidia-uvm
	}{
		"no cards":         {plug: func(m *machine) { m.failed = errNoDriver }},
		"another vendor's": {plug: func(m *machine) { m.failed = errNoDriver; m.plug(a, "0x8086", display, "i915") }},
		"its sound device": {plug: func(m *machine) { m.failed = errNoDriver; m.plug(a, nvidiaID, "0x040300", "") }},
		"no driver": {plug: func(m *machine) { m.failed = errNoDriver; m.plug(a, nvidiaID, display, "") },
			want: []string{"no driver is bound to it: install the NVIDIA driver"}},
		"its driver is being installed": {plug: func(m *machine) {
			m.failed = errNoDriver
			m.plug(a, nvidiaID, display, "")
			m.file(DriverReport, "the driver is being installed since 03:04 UTC: install the packages (step 4 of 9)\nmore\n")
		}, want: []string{"no driver is bound to it: the driver is being installed since 03:04 UTC: install the packages (step 4 of 9)"}},
		"nouveau": {plug: func(m *machine) { m.failed = errNoDriver; m.plug(a, nvidiaID, "0x030000", "nouveau") },
			want: []string{"driver nouveau is bound to it"}},
		"given to a guest": {plug: func(m *machine) { m.failed = errNoDriver; m.plug(a, nvidiaID, display, "vfio-pci") }},
		"a library of another version": {plug: func(m *machine) {
			m.failed = errors.New("NVML: Driver/library version mismatch")
			m.plug(a, nvidiaID, display, "nvidia")
			m.file("dev/nvidia-uvm", "")
		}, want: []string{"version mismatch"}},
		"one of two is not listed": {plug: func(m *machine) {
			m.plug(a, nvidiaID, display, "nvidia")
			m.plug(b, nvidiaID, display, "nvidia")
			m.cards = []string{a}
			m.file("dev/nvidia-uvm", "")
		}, want: []string{"does not list it"}, cards: 1},
		"no nvidia-uvm": {plug: func(m *machine) {
			m.plug(a, nvidiaID, display, "nvidia")
			m.cards = []string{a}
		}, want: []string{"/dev/nvidia-uvm does not exist"}, cards: 1, loaded: 1},
		"all is well": {plug: func(m *machine) {
			m.plug(a, nvidiaID, display, "nvidia")
			m.cards = []string{a}
			m.file("dev/nvidia-uvm", "")
		}, cards: 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, f := newMachine(t)
			c.plug(m)
			cards, unusable, errs := f.scan(t.Context())
			if len(errs) > 0 || len(cards) != c.cards || len(unusable) != len(c.want) || m.ran != c.loaded {
				t.Fatalf("got %d cards, unusable %v, errors %v, nvidia-uvm loaded %d times; want %d cards, %d unusable, none, %d times",
					len(cards), unusable, errs, m.ran, c.cards, len(c.want), c.loaded)
			}
			for i, want := range c.want {
				if !strings.Contains(unusable[i].Reason, want) {
					t.Errorf("reason of card %s = %q, want it to contain %q", unusable[i].Address, unusable[i].Reason, want)
				}
			}
		})
	}
}

// TestVirtualFunctionsAreNoCards checks that a virtual function is not listed as
// a card.
func TestVirtualFunctionsAreNoCards(t *testing.T) {
	m, f := newMachine(t)
	m.failed = errNoDriver
	m.plug("0000:65:00.4", nvidiaID, display, "")
	m.file("sys/bus/pci/devices/0000:65:00.4/physfn", "")
	if _, unusable, _ := f.scan(t.Context()); len(unusable) > 0 {
		t.Errorf("unusable cards = %v, want none", unusable)
	}
}

// TestCardsThatComeLaterAreFound checks that a driver that is loaded later and a card
// that is plugged in later are found, once each, and that the driver is not opened
// again while all cards are listed.
func TestCardsThatComeLaterAreFound(t *testing.T) {
	m, f := newMachine(t)
	s := &Server{cfg: Config{Log: slog.New(slog.DiscardHandler)}, finder: *f}
	steps := []struct {
		what  string
		do    func()
		fresh []sched.GPUID
		wrong int
	}{
		{"a card without a driver", func() { m.failed = errNoDriver; m.plug("0000:65:00.0", nvidiaID, display, "") }, nil, 1},
		{"its driver is loaded", func() {
			m.failed = nil
			m.plug("0000:65:00.0", nvidiaID, display, "nvidia")
			m.cards = []string{"0000:65:00.0"}
			m.file("dev/nvidia-uvm", "")
		}, []sched.GPUID{"GPU-0000:65:00.0"}, 0},
		{"nothing has changed", func() {}, nil, 0},
		{"another is plugged in", func() {
			m.plug("0000:66:00.0", nvidiaID, display, "nvidia")
			m.cards = append(m.cards, "0000:66:00.0")
		}, []sched.GPUID{"GPU-0000:66:00.0"}, 0},
		{"nothing has changed again", func() {}, nil, 0},
	}
	for _, st := range steps {
		st.do()
		var fresh []sched.GPUID
		for _, c := range s.find(t.Context()) {
			fresh = append(fresh, c.ID)
		}
		if diff := cmp.Diff(st.fresh, fresh); diff != "" {
			t.Errorf("%s: new cards (-want +got):\n%s", st.what, diff)
		}
		if got := *s.unusable.Load(); len(got) != st.wrong {
			t.Errorf("%s: unusable cards = %v, want %d", st.what, got, st.wrong)
		}
	}
	if m.opened != 3 {
		t.Errorf("the driver was opened %d times, want 3", m.opened)
	}
}
