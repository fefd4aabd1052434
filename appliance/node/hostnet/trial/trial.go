package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
)

// Machine is what a trial does besides files.
type Machine interface {
	// Reload has networkd read its files and put them into use.
	Reload(ctx context.Context) error
	// Delete a bond or a VLAN; one that is not there is no error.
	Delete(ctx context.Context, device string) error
	// PacketSizes returns the MTUs of the cards, by device, in bytes.
	PacketSizes() (map[string]int, error)
	// SetPacketSize of a card that has another; one that is not there is no error.
	SetPacketSize(ctx context.Context, device string, mtu int) error
	// Arm has the rollback started after a time, whatever becomes of this process, and
	// again until it has succeeded.
	Arm(ctx context.Context, after time.Duration) error
	// Disarm takes that back.
	Disarm(ctx context.Context) error
}

// Trial of a network.
type Trial struct {
	Folders Folders
	Machine Machine
	// Probe returns why the network on trial is no good; nil: it is.
	Probe func(ctx context.Context) error
	Log   *slog.Logger
	// Cut is asked before each step that changes something; an error ends the sequence
	// there, as a kill would. For tests.
	Cut func(step string) error
}

// Limits of the time to confirm.
const (
	MinWithin     = 10 * time.Second
	MaxWithin     = 24 * time.Hour
	DefaultWithin = 2 * time.Minute
)

// State of a node's network.
type State struct {
	Confirmed []byte // declaration in force; nil: files that no declaration stands behind, or none
	Files     []hostnet.Rendered
	OnTrial   []byte    // declaration on trial; nil: none
	Until     time.Time // when the trial ends by itself
}

// record of a trial.
type record struct {
	Declaration string    `json:"declaration"`
	Until       time.Time `json:"until"`
	Back        []string  `json:"back,omitempty"` // devices that go when it is taken back
	// Sizes are the cards' MTUs before: files that name none leave a card with the one that
	// it has.
	Sizes map[string]int `json:"sizes,omitempty"`
}

func (f Folders) record() string { return filepath.Join(f.State, "trial.json") }

// ErrNone is that there is nothing on trial.
var ErrNone = errors.New("no network is on trial")

// Read the state.
func Read(f Folders) (State, error) {
	var s State
	for _, dir := range []string{f.Confirmed, f.Admin} {
		files, err := own(dir)
		if err != nil {
			return s, err
		}
		s.Files = append(s.Files, files...)
	}
	declaration, err := os.ReadFile(filepath.Join(f.Confirmed, DeclarationFile))
	if err == nil {
		s.Confirmed = declaration
	} else if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	r, err := readRecord(f)
	if errors.Is(err, ErrNone) {
		return s, nil
	}
	s.OnTrial, s.Until = []byte(r.Declaration), r.Until
	return s, err
}

func readRecord(f Folders) (r record, err error) {
	raw, err := os.ReadFile(f.record())
	if errors.Is(err, fs.ErrNotExist) {
		return r, ErrNone
	}
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", f.record(), err)
	}
	return r, nil
}

// Apply puts a declaration on trial until it is confirmed or the time is over. A network
// that the probe finds no good is taken back at once.
func (t *Trial) Apply(ctx context.Context, declaration []byte, n *hostnet.Network, within time.Duration) error {
	unlock, err := t.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := readRecord(t.Folders); !errors.Is(err, ErrNone) {
		return errors.Join(err, errors.New("a network is on trial already: confirm it or roll it back first"))
	}
	if err := t.adopt(); err != nil {
		return err
	}
	old, err := own(t.Folders.Confirmed)
	if err != nil {
		return err
	}
	// From here on the timer takes back whatever is half done.
	if err := t.step("arm", func() error { return t.Machine.Arm(ctx, within) }); err != nil {
		return fmt.Errorf("arm the time limit: %w", err)
	}
	err = t.put(ctx, declaration, plan(old, hostnet.Render(n)), time.Now().Add(within))
	if err == nil && t.Probe != nil {
		err = t.Probe(ctx)
	}
	if err == nil || errors.Is(err, errCut) {
		return err
	}
	t.Log.Warn("network on trial is no good, rolling back", "error", err)
	return errors.Join(fmt.Errorf("the network was taken back: %w", err), t.back(context.WithoutCancel(ctx)))
}

// put the files of a trial into use.
func (t *Trial) put(ctx context.Context, declaration []byte, c change, until time.Time) error {
	sizes, err := t.Machine.PacketSizes()
	if err != nil {
		return err
	}
	raw, err := json.Marshal(record{string(declaration), until.UTC(), c.back, sizes})
	if err != nil {
		return err
	}
	if err := t.step("record", func() error { return atomicfile.WriteFileUnsynced(t.Folders.record(), raw, 0o600) }); err != nil {
		return err
	}
	if err := os.MkdirAll(t.Folders.Runtime, 0o755); err != nil { //nolint:gosec // networkd is another user
		return err
	}
	for _, name := range c.hide {
		if err := t.step("hide "+name, func() error { return os.Symlink(hidden, filepath.Join(t.Folders.Runtime, name)) }); err != nil {
			return err
		}
	}
	for _, f := range c.write {
		if err := t.step("write "+f.Name, func() error {
			return atomicfile.WriteFileUnsynced(filepath.Join(t.Folders.Runtime, f.Name), []byte(f.Content), 0o644)
		}); err != nil {
			return err
		}
	}
	return t.use(ctx, c.gone)
}

// use what the folders say now, without the devices that are gone.
func (t *Trial) use(ctx context.Context, gone []string) error {
	for _, d := range gone {
		if err := t.step("delete "+d, func() error { return t.Machine.Delete(ctx, d) }); err != nil {
			return fmt.Errorf("delete %s: %w", d, err)
		}
	}
	return t.step("reload", func() error { return t.Machine.Reload(ctx) })
}

// Confirm makes the network on trial the one that is in force for good.
func (t *Trial) Confirm(ctx context.Context) error {
	unlock, err := t.lock()
	if err != nil {
		return err
	}
	defer unlock()
	r, err := readRecord(t.Folders)
	if err != nil {
		return err
	}
	n, err := hostnet.Parse([]byte(r.Declaration))
	if err != nil {
		return fmt.Errorf("network on trial: %w", err)
	}
	if err := t.replace([]byte(r.Declaration), hostnet.Render(&n)); err != nil {
		return err
	}
	// It is confirmed. What follows leads to the same files, and the timer, should it go
	// off before it is disarmed, back to them.
	if err := t.clear(); err != nil {
		return err
	}
	return t.end(ctx)
}

// Rollback takes the network on trial back.
func (t *Trial) Rollback(ctx context.Context) error {
	unlock, err := t.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return t.back(ctx)
}

func (t *Trial) back(ctx context.Context) error {
	r, err := readRecord(t.Folders)
	if errors.Is(err, ErrNone) {
		return errors.Join(err, t.step("disarm", func() error { return t.Machine.Disarm(ctx) }))
	}
	if err != nil { // of a damaged record: the files go back, devices may stay
		t.Log.Warn("read record of the trial failed", "error", err)
	}
	if err := t.clear(); err != nil {
		return err
	}
	if err := t.use(ctx, r.Back); err != nil {
		return fmt.Errorf("put the confirmed network into use: %w", err)
	}
	for d, mtu := range r.Sizes {
		if err := t.step("size of "+d, func() error { return t.Machine.SetPacketSize(ctx, d, mtu) }); err != nil {
			// The network is back; a card with another MTU carries it as well as it can.
			t.Log.Warn("set MTU of a card back failed", "card", d, "error", err)
		}
	}
	return t.end(ctx)
}

// end the trial: its record, and then the timer, which does nothing without one.
func (t *Trial) end(ctx context.Context) error {
	if err := t.step("forget", func() error { return os.Remove(t.Folders.record()) }); err != nil {
		return err
	}
	return t.step("disarm", func() error { return t.Machine.Disarm(ctx) })
}

// errCut is wrapped by what Cut returns.
var errCut = errors.New("cut")

func (t *Trial) step(name string, do func() error) error {
	if t.Cut != nil {
		if err := t.Cut(name); err != nil {
			return fmt.Errorf("%w before %s: %w", errCut, name, err)
		}
	}
	t.Log.Debug("network trial: " + name)
	return do()
}

// lock out other processes; the kernel lets go of it when this one ends.
func (t *Trial) lock() (func(), error) {
	if err := os.MkdirAll(t.Folders.State, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(t.Folders.State, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another command changes the network of this node: %w", err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
