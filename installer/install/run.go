package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/installer/machine"
)

// Progress is the progress of the installation.
type Progress struct {
	Step, Steps int // the current step, from 0
	ID, Text    string
	Fraction    float64 // of this step; negative: unknown
	Bytes       uint64  // written in this step
	Total       uint64  // to be written; 0: unknown
	Done        bool    // the whole installation is done
}

// Executor executes a plan.
type Executor struct {
	Target   string
	Log      io.Writer
	Progress func(Progress) // not called concurrently
	Disks    func(ctx context.Context, ignoreBelow string) ([]machine.Disk, error)
	Sys      string // where the kernel's sysfs is mounted; empty: /sys
	Packages string // where a medium with packages is mounted; empty: below /run
	// Command runs a program and writes its output to out.
	Command func(ctx context.Context, argv []string, input string, out io.Writer) error
}

// Run runs the steps in order. The error is an *api.Error with a hint. After any error,
// and after a power cut, the same plan may be run again.
func (e *Executor) Run(ctx context.Context, steps []Step) error {
	for i, s := range steps {
		at := Progress{Step: i, Steps: len(steps), ID: s.ID, Text: s.Text, Fraction: -1}
		e.logf("step %d of %d: %s", i+1, len(steps), s.Text)
		e.Progress(at)
		for _, a := range s.Actions {
			e.logf("  %s", a)
			if err := e.act(ctx, a, at); err != nil {
				e.logf("  failed: %v", err)
				return failure(ctx, s, err)
			}
		}
	}
	e.logf("the installation is complete")
	e.Progress(Progress{Step: len(steps), Steps: len(steps), Text: "Complete", Fraction: 1, Done: true})
	return nil
}

func (e *Executor) logf(format string, args ...any) {
	fmt.Fprintf(e.Log, time.Now().UTC().Format("15:04:05")+" "+format+"\n", args...)
}

func (e *Executor) act(ctx context.Context, a Action, at Progress) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch a := a.(type) {
	case Run:
		err := e.run(ctx, a.Argv, a.Input, io.Discard)
		if err != nil && a.MayFail != "" && ctx.Err() == nil {
			e.logf("  went wrong, which does not matter (%s): %v", a.MayFail, err)
			return nil
		}
		return err
	case Unpack:
		return e.unpack(ctx, a, at)
	case Recheck:
		return e.recheck(ctx, a.Disk)
	case StopArrays:
		return e.stopArrays(ctx, a)
	case Release:
		return release(e.Target)
	case CheckPackages:
		return e.CheckPackages(ctx, a.From)
	case CopyPackages:
		return e.copyPackages(ctx, a)
	case Await:
		return await(ctx, a.Paths, 30*time.Second)
	case Write:
		return e.within(func(r *os.Root) error { return write(r, a) })
	case Mkdir:
		return e.within(func(r *os.Root) error { return mkdir(r, a) })
	case Link:
		return e.within(func(r *os.Root) error { return link(r, a) })
	case Remove:
		return e.within(func(r *os.Root) error { return remove(r, a) })
	case RecordLoaders:
		e.recordLoaders(ctx, a)
		return nil
	case Kernel:
		return e.within(kernel)
	}
	return fmt.Errorf("install: no way to do %T", a)
}

// run runs a program; its error contains the end of its output.
func (e *Executor) run(ctx context.Context, argv []string, input string, also io.Writer) error {
	var last tail
	if err := e.Command(ctx, argv, input, io.MultiWriter(&last, also, &indent{w: e.Log})); err != nil {
		if words := last.String(); words != "" {
			return fmt.Errorf("%s: %w: %s", argv[0], err, words)
		}
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	return nil
}

// Exec runs a command; it is the real Command.
func Exec(ctx context.Context, argv []string, input string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), out, out
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	cmd.WaitDelay = 5 * time.Second
	return cmd.Run()
}

func (e *Executor) recheck(ctx context.Context, want machine.Disk) error {
	disks, err := e.Disks(ctx, e.Target)
	if err != nil {
		return err
	}
	for _, d := range disks {
		switch {
		case d.Path != want.Path:
		case d.Serial != want.Serial || d.SizeBytes != want.SizeBytes || d.Model != want.Model:
			return api.Errorf(api.CodeConflict, "%s is another disk now: serial %q, %s", d.Path, d.Serial, machine.Bytes(d.SizeBytes)).
				WithHint("choose the disk again")
		case d.Refusal != nil:
			return api.Errorf(api.CodeInUse, "%s cannot be erased: %s", d.Path, d.Refusal.Reason).WithHint("%s", d.Refusal.Hint)
		default:
			return nil
		}
	}
	return api.Errorf(api.CodeNotFound, "%s is gone", want.Path).WithHint("check its cable, then choose the disk again")
}

// hints are what to do when a step fails.
var hints = map[string]string{
	"erase":     "the disk may be write-protected or broken: see the log and dmesg, then try again or choose another disk",
	"partition": "the disk may be in use or broken: see the log and dmesg, then try again or choose another disk",
	"format":    "the disk may be broken: see the log and dmesg, then try again or choose another disk",
	"mount":     "see the log and dmesg, then try again",
	"unpack":    "the medium or the disk may be damaged: compare the medium's SHA-256, then try another medium or disk",
	"configure": "see the log; if the medium is whole, this is a mistake of the installer: please report it with the log",
	"boot":      "see the log; if the medium is whole, this is a mistake of the installer: please report it with the log",
	"unmount":   "leave every shell that is below " + Target + ", then try again",
	"complete":  "try again",
}

func failure(ctx context.Context, s Step, err error) error {
	if ctx.Err() != nil {
		return api.Errorf(api.CodeState, "the installation was stopped while it was to %s", lower(s.Text)).
			WithHint("the disk does not start; install again to make it a node")
	}
	var known *api.Error
	if errors.As(err, &known) {
		return known
	}
	return api.Errorf(api.CodeInternal, "could not %s: %v", lower(s.Text), err).WithHint("%s", hints[s.ID])
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// tail keeps the last line of the output, at most 300 bytes.
type tail struct{ buf []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - 2048; over > 0 {
		t.buf = t.buf[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	lines := bytes.Split(bytes.TrimSpace(t.buf), []byte("\n"))
	last := lines[len(lines)-1]
	return strings.ToValidUTF8(string(last[:min(len(last), 300)]), "?")
}

// indent indents the output of programs in the log, and drops bare numbers, which are
// progress.
type indent struct {
	w    io.Writer
	line []byte
}

func (i *indent) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\n' && c != '\r' {
			if len(i.line) < 1024 {
				i.line = append(i.line, c)
			}
			continue
		}
		if len(i.line) > 0 && len(bytes.Trim(i.line, "0123456789 %")) > 0 {
			fmt.Fprintf(i.w, "           %s\n", i.line)
		}
		i.line = i.line[:0]
	}
	return len(p), nil
}

// within calls f with the target as root, so that links in it cannot lead out of it.
func (e *Executor) within(f func(*os.Root) error) error {
	r, err := os.OpenRoot(e.Target)
	if err != nil {
		return err
	}
	return errors.Join(f(r), r.Close())
}

func write(r *os.Root, a Write) error {
	if err := r.MkdirAll(filepath.Dir(a.Path), 0o755); err != nil {
		return err
	}
	temporary := a.Path + ".basalt-new"
	if err := r.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := r.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(a.Data)
	if err = errors.Join(err, f.Chmod(a.Mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return r.Rename(temporary, a.Path)
}

func mkdir(r *os.Root, a Mkdir) error {
	if err := r.MkdirAll(a.Path, 0o755); err != nil {
		return err
	}
	return r.Chmod(a.Path, a.Mode)
}

func link(r *os.Root, a Link) error {
	if err := r.Remove(a.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return r.Symlink(a.To, a.Path)
}

func remove(r *os.Root, a Remove) error {
	entries, err := os.ReadDir(filepath.Join(r.Name(), filepath.Dir(a.Pattern)))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ok, _ := filepath.Match(filepath.Base(a.Pattern), e.Name()); ok { // the patterns are constants and valid
			if err := r.RemoveAll(filepath.Join(filepath.Dir(a.Pattern), e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// kernel creates the links /vmlinuz and /initrd.img, as Debian's kernel packages do, if
// the image lacks them.
func kernel(r *os.Root) error {
	for link, prefix := range map[string]string{"vmlinuz": "vmlinuz-", "initrd.img": "initrd.img-"} {
		if _, err := r.Stat(link); err == nil {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(r.Name(), "boot"))
		if err != nil {
			return err
		}
		newest := ""
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), prefix) {
				newest = e.Name() // ReadDir sorts
			}
		}
		if newest == "" {
			return fmt.Errorf("the image has no /boot/%s*", prefix)
		}
		if err := r.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := r.Symlink("boot/"+newest, link); err != nil {
			return err
		}
	}
	return nil
}
