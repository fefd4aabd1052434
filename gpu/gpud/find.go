package gpud

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// findEvery is the interval at which gpud looks for new cards and newly loaded drivers:
// a driver may be installed long after gpud has started.
const findEvery = 10 * time.Second

// driver is NVIDIA's driver, as far as gpud uses it.
type driver interface {
	// cards returns the cards; one that does not respond is left out, with an
	// error.
	cards() (cards []cardInfo, errs []error)
	sensors(id sched.GPUID) sensors
	// settings returns an error if the card with that index cannot be used by
	// several workers.
	settings(index int) error
	close()
}

// errNoDriver means that NVIDIA's driver is not installed, or its module is not
// loaded.
var errNoDriver = errors.New("the NVIDIA driver is not available")

// finder finds the machine's NVIDIA cards, both those that the driver lists and those
// that it does not. Only one goroutine may use it at a time.
type finder struct {
	root    string // root of the file system, for tests
	open    func() (driver, error)
	prepare func(ctx context.Context) error // loads nvidia-uvm

	driver driver // nil: not opened yet
	failed error  // the reason
	asked  bool
	listed []string // addresses of the cards that the driver has listed
}

// scan returns the cards that the driver lists, and those on the bus that cannot be used.
func (f *finder) scan(ctx context.Context) (cards []cardInfo, unusable []wire.UnusableGPU, errs []error) {
	bus, err := busCards(filepath.Join(f.root, "sys"))
	if err != nil {
		errs = append(errs, err)
	}
	if f.outdated(bus) {
		f.reopen()
	}
	if f.driver != nil {
		var failed []error
		cards, failed = f.driver.cards()
		errs = append(errs, failed...)
	}
	f.listed = f.listed[:0]
	for _, c := range cards {
		f.listed = append(f.listed, c.Address)
	}
	memory := f.unifiedMemory(ctx, bus)
	for _, c := range bus {
		if why := f.unusable(c, memory); why != "" {
			unusable = append(unusable, wire.UnusableGPU{Address: c.address, Reason: why})
		}
	}
	return cards, unusable, errs
}

// outdated reports whether the driver must be opened again: NVML only lists the cards
// that existed when it was opened.
func (f *finder) outdated(bus []busCard) bool {
	return !f.asked || slices.ContainsFunc(bus, func(c busCard) bool { return c.driver == "nvidia" && !slices.Contains(f.listed, c.address) })
}

func (f *finder) reopen() {
	f.close()
	f.asked = true
	f.driver, f.failed = f.open()
}

func (f *finder) close() {
	if f.driver != nil {
		f.driver.close()
		f.driver = nil
	}
}

// unifiedMemory makes sure that the module is loaded without which no CUDA program
// starts. Normally CUDA programs load it, but workers are not permitted to.
func (f *finder) unifiedMemory(ctx context.Context, bus []busCard) error {
	if !slices.ContainsFunc(bus, func(c busCard) bool { return c.driver == "nvidia" }) {
		return nil
	}
	is := func() bool { _, err := os.Stat(filepath.Join(f.root, "dev/nvidia-uvm")); return err == nil }
	if is() {
		return nil
	}
	err := f.prepare(ctx)
	if is() {
		return nil
	}
	return errors.Join(errors.New("/dev/nvidia-uvm does not exist"), err)
}

// loadUnifiedMemory loads nvidia-uvm and creates its device files.
func loadUnifiedMemory(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, findEvery)
	defer cancel()
	// nvidia-modprobe(1)
	out, err := exec.CommandContext(ctx, "nvidia-modprobe", "-u", "-c", "0").CombinedOutput()
	if err != nil {
		return errors.Join(errors.New("nvidia-modprobe -u -c 0: "+string(out)), err)
	}
	return nil
}

// unusable returns why a card on the bus cannot be used. It is empty when the card
// can be used, or when the operator has assigned it to vfio-pci.
func (f *finder) unusable(c busCard, memory error) string {
	switch {
	case c.driver == "vfio-pci":
		return ""
	case c.driver == "":
		if report := f.report(); report != "" {
			return "no driver is bound to it: " + report
		}
		return "no driver is bound to it: install the NVIDIA driver on the node (basalt-gpud driver install, docs/gpu-nodes.md), and look for NVRM in the kernel log"
	case c.driver != "nvidia":
		return "driver " + c.driver + " is bound to it: remove that driver, and load the NVIDIA driver (docs/gpu-nodes.md)"
	case f.driver == nil:
		return "its driver is not responding: " + f.failed.Error()
	case !slices.Contains(f.listed, c.address):
		return "its driver does not list it: look for NVRM in the kernel log"
	case memory != nil:
		return memory.Error()
	}
	return ""
}

// DriverReport is the file in which an installation of the driver reports its progress or
// its failure, in one line. It exists only until the installation has succeeded.
const DriverReport = "/run/basalt/gpu-driver"

// maxReport limits the report, in bytes.
const maxReport = 500

// report returns how the installation of the driver goes, or an empty string if there is
// none.
func (f *finder) report() string {
	raw, err := os.ReadFile(filepath.Join(f.root, DriverReport))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	return strings.ToValidUTF8(line[:min(len(line), maxReport)], "")
}

// find returns new cards, and logs the cards that cannot be used when that has changed.
func (s *Server) find(ctx context.Context) (fresh []cardInfo) {
	cards, unusable, errs := s.finder.scan(ctx)
	for _, err := range errs {
		s.cfg.Log.Error("GPU is not used", "error", err)
	}
	if before := s.unusable.Swap(&unusable); before == nil || !slices.Equal(*before, unusable) {
		for _, c := range unusable {
			s.cfg.Log.Error("GPU is not usable", "address", c.Address, "reason", c.Reason)
		}
	}
	for _, c := range cards {
		if !slices.Contains(s.real, c.ID) {
			s.real = append(s.real, c.ID)
			fresh = append(fresh, c)
		}
	}
	return fresh
}

// watchCards looks for new cards, and reads temperature and power once a second. It
// runs in its own goroutine because NVML calls can take milliseconds, too long for
// the goroutine that owns the state.
func (s *Server) watchCards(ctx context.Context) {
	if s.cfg.NoNVIDIA {
		return
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for found := time.Now(); ; {
		if time.Since(found) >= findEvery {
			fresh := s.find(ctx)
			s.logCards(fresh)
			s.core.call(func() { s.core.addCards(fresh) })
			found = time.Now()
		}
		for _, id := range s.real {
			read := sensors{lost: true} // the driver has been removed, and the card with it
			if s.finder.driver != nil {
				read = s.finder.driver.sensors(id)
			}
			s.core.call(func() { s.core.read(id, read, now()) })
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
