package gpudriver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// Installer installs the driver on a node. Only one can work at a time.
type Installer struct {
	Root   string // of the file system: / except in tests
	Kernel string // the release to build modules for; empty: the running kernel
	Out    io.Writer
	// Command runs a program and writes its output to out.
	Command func(ctx context.Context, argv []string, out io.Writer) error
	// Doctor checks the cards.
	Doctor func(ctx context.Context) error
	// Report is a file that says, while cards have no driver, how its installation goes.
	Report string
	Now    func() time.Time

	checked bool
}

// ErrIncomplete is returned by Status if a step is not done.
var ErrIncomplete = errors.New("the driver is not completely installed")

// Install performs the steps that are not done. The error is a *Refusal if trying again
// does not help.
func (n *Installer) Install(ctx context.Context, o Options) error {
	n.setDefaults()
	unlock, err := n.lock()
	if err != nil {
		return err
	}
	err = errors.Join(n.install(ctx, o), os.RemoveAll(filepath.Join(n.Root, workDir)))
	if err != nil {
		n.report("the installation of the driver failed at " + n.Now().UTC().Format("15:04 UTC") + ": " + err.Error())
	} else {
		err = n.unreport()
	}
	return errors.Join(err, unlock())
}

func (n *Installer) install(ctx context.Context, o Options) error {
	began := n.Now()
	var last StepID
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, err := n.observe(ctx)
		if err != nil {
			return err
		}
		all, err := Decide(s, o)
		if err != nil {
			return err
		}
		i := next(all)
		if i < 0 {
			fmt.Fprintf(n.Out, "NVIDIA's driver is installed for kernel %s\n", s.Kernel)
			return nil
		}
		if all[i].ID == last {
			return fmt.Errorf("%s: it ended without an error, but %s", all[i].Text, all[i].Missing)
		}
		last = all[i].ID
		fmt.Fprintf(n.Out, "[%d/%d] %s\n", i+1, len(all), all[i].Text)
		n.report(fmt.Sprintf("the driver is being installed since %s: %s (step %d of %d)", began.UTC().Format("15:04 UTC"), all[i].Text, i+1, len(all)))
		if err := n.perform(ctx, all[i].ID, s, o); err != nil {
			return fmt.Errorf("%s: %w", all[i].Text, err)
		}
	}
}

// next returns the index of the first step that is not done, or -1.
func next(all []Step) int {
	for i, s := range all {
		if !s.Done {
			return i
		}
	}
	return -1
}

// Status prints the state of each step. It returns ErrIncomplete if one is not done, and
// a *Refusal if the driver could not be installed.
func (n *Installer) Status(ctx context.Context, o Options) error {
	n.setDefaults()
	n.checked = true // status does not start a worker
	s, err := n.observe(ctx)
	if err != nil {
		return err
	}
	for _, g := range s.Cards {
		fmt.Fprintf(n.Out, "card %s: %s\n", g.Address, orElse(g.Driver, "no driver is bound to it"))
	}
	fmt.Fprintf(n.Out, "driver: %s\n", orElse(s.Driver, "not loaded"))
	o.AcceptLicense = true // nothing is installed
	err = check(s, o)
	var incomplete error
	for _, step := range steps(s, o) {
		switch {
		case step.ID == StepDoctor:
		case step.Done:
			fmt.Fprintf(n.Out, "done     %s\n", step.Text)
		default:
			fmt.Fprintf(n.Out, "missing  %s: %s\n", step.Text, step.Missing)
			incomplete = ErrIncomplete
		}
	}
	if incomplete == nil {
		return nil
	}
	if err != nil {
		return err
	}
	return incomplete
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (n *Installer) setDefaults() {
	if n.Now == nil {
		n.Now = time.Now
	}
	if n.Kernel == "" {
		n.Kernel = n.running()
	}
}

// lock makes sure that only one installation works at a time.
func (n *Installer) lock() (unlock func() error, err error) {
	name := filepath.Join(n.Root, workDir+".lock")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the driver can be installed by root only: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(errors.New("another installation of the driver is running: basalt-gpud driver status shows how far it is"), f.Close())
	}
	return f.Close, nil
}

// report writes the report. Without one, the alert of the cards only lacks the progress.
func (n *Installer) report(text string) {
	if n.Report == "" {
		return
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(n.Report), 0o755), atomicfile.WriteFileUnsynced(n.Report, []byte(text+"\n"), 0o644)); err != nil {
		fmt.Fprintln(n.Out, "the progress cannot be reported to basalt-gpud:", err)
	}
}

func (n *Installer) unreport() error {
	if n.Report == "" {
		return nil
	}
	if err := os.Remove(n.Report); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
