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

// Machine performs what a trial does besides writing files.
type Machine interface {
	// Stop stops networkd, which leaves the network as it is. A running networkd would
	// restore what is deleted, by files that it has read earlier.
	Stop(ctx context.Context) error
	// Start starts networkd, which applies its files.
	Start(ctx context.Context) error
	// Delete deletes a bond, a VLAN, a bridge or a pair of virtual cards; it returns nil if there is none.
	Delete(ctx context.Context, device string) error
	// PacketSizes returns the MTUs of the cards, by device, in bytes.
	PacketSizes() (map[string]int, error)
	// SetPacketSize sets the MTU of a card; it returns nil if there is no such
	// card.
	SetPacketSize(ctx context.Context, device string, mtu int) error
	// Arm schedules the rollback to be started after a time, whether or not this
	// process is alive then, and again until it has succeeded.
	Arm(ctx context.Context, after time.Duration) error
	// Disarm cancels that.
	Disarm(ctx context.Context) error
}

// Trial applies, confirms and rolls back networks.
type Trial struct {
	Folders Folders
	Machine Machine
	// Probe returns why the network on trial does not work, or nil.
	Probe func(ctx context.Context) error
	// Firewall loads the packet filter of the declaration in force, or removes it; n is
	// nil if there are only files without a declaration. nil: it is left alone.
	Firewall func(ctx context.Context, n *hostnet.Network, onTrial bool) error
	Log      *slog.Logger
	// Cut is called before each step that changes something; an error ends the
	// sequence there, as a kill would. It is for tests.
	Cut func(step string) error
}

// Limits of the time to confirm.
const (
	MinWithin     = 10 * time.Second
	MaxWithin     = 24 * time.Hour
	DefaultWithin = 2 * time.Minute
)

// State is the state of a node's network.
type State struct {
	Confirmed []byte // declaration in force; nil if there are only files without a declaration, or none
	Files     []hostnet.Rendered
	OnTrial   []byte    // declaration on trial; nil if there is none
	Until     time.Time // when the trial is rolled back
}

// record is the stored record of a trial.
type record struct {
	Declaration string    `json:"declaration"`
	Until       time.Time `json:"until"`
	Back        []string  `json:"back,omitempty"` // devices to delete in a rollback
	// Sizes are the cards' MTUs before the trial: files without an MTU do not
	// change a card's current one.
	Sizes map[string]int `json:"sizes,omitempty"`
}

func (f Folders) record() string { return filepath.Join(f.State, "trial.json") }

// ErrNone is returned if there is nothing on trial.
var ErrNone = errors.New("no network is on trial")

// InForce returns the declaration that is in force: the one on trial, or else the
// confirmed one. It is nil if none is declared.
func (s State) InForce() (n *hostnet.Network, onTrial bool, err error) {
	text := s.Confirmed
	if s.OnTrial != nil {
		text, onTrial = s.OnTrial, true
	}
	if text == nil {
		return nil, false, nil
	}
	declared, err := hostnet.Parse(text)
	if err != nil {
		return nil, onTrial, fmt.Errorf("parse the network declaration of this node: %w", err)
	}
	return &declared, onTrial, nil
}

// Read reads the state of the network.
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

// Apply puts a declaration on trial until it is confirmed or the time has passed. A
// network that fails the probe is rolled back at once.
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
	// From here on the timer rolls back whatever is incomplete.
	if err := t.step("arm", func() error { return t.Machine.Arm(ctx, within) }); err != nil {
		return fmt.Errorf("arm the time limit: %w", err)
	}
	err = t.install(ctx, declaration, plan(old, hostnet.Render(n)), time.Now().Add(within))
	if err == nil {
		err = t.filter(ctx, n, true)
	}
	if err == nil && t.Probe != nil {
		err = t.Probe(ctx)
	}
	if err == nil || errors.Is(err, errCut) {
		return err
	}
	t.Log.Warn("network trial failed, rolling back", "error", err)
	return errors.Join(fmt.Errorf("the network was rolled back: %w", err), t.rollBack(context.WithoutCancel(ctx)))
}

// install writes the files of a trial and applies them.
func (t *Trial) install(ctx context.Context, declaration []byte, c change, until time.Time) error {
	sizes, err := t.Machine.PacketSizes()
	if err != nil {
		return fmt.Errorf("read the packet sizes to roll back to: %w", err)
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

// use applies the current files, without the devices that are gone.
func (t *Trial) use(ctx context.Context, gone []string) error {
	if err := t.step("stop networkd", func() error { return t.Machine.Stop(ctx) }); err != nil {
		return fmt.Errorf("stop networkd: %w", err)
	}
	var failed error
	for _, d := range gone {
		if err := t.step("delete "+d, func() error { return t.Machine.Delete(ctx, d) }); errors.Is(err, errCut) {
			return err
		} else if err != nil {
			failed = errors.Join(failed, fmt.Errorf("delete %s: %w", d, err))
		}
	}
	err := t.step("start networkd", func() error { return t.Machine.Start(ctx) })
	if err != nil {
		err = fmt.Errorf("start networkd: %w", err)
	}
	return errors.Join(failed, err)
}

// Confirm makes the network on trial permanent.
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
	// The network is confirmed. The following steps lead to the same files, and so
	// does the timer, if it expires before it is disarmed.
	if err := t.clear(); err != nil {
		return err
	}
	t.filterConfirmed(ctx)
	return t.end(ctx)
}

// filter loads the packet filter of a declaration.
func (t *Trial) filter(ctx context.Context, n *hostnet.Network, onTrial bool) error {
	if t.Firewall == nil {
		return nil
	}
	return t.step("firewall", func() error { return t.Firewall(ctx, n, onTrial) })
}

// filterConfirmed loads the packet filter of the confirmed declaration. An error is only
// logged, because it must not keep a network from being confirmed or restored; basaltd
// tries again.
func (t *Trial) filterConfirmed(ctx context.Context) {
	var n *hostnet.Network
	data, err := os.ReadFile(filepath.Join(t.Folders.Confirmed, DeclarationFile))
	if err == nil {
		var confirmed hostnet.Network
		if confirmed, err = hostnet.Parse(data); err == nil {
			n = &confirmed
		}
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = t.filter(ctx, n, false)
	}
	if err != nil {
		t.Log.Warn("load firewall of the confirmed network failed", "error", err)
	}
}

// Rollback rolls the network on trial back.
func (t *Trial) Rollback(ctx context.Context) error {
	unlock, err := t.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return t.rollBack(ctx)
}

func (t *Trial) rollBack(ctx context.Context) error {
	r, err := readRecord(t.Folders)
	if errors.Is(err, ErrNone) {
		return errors.Join(err, t.step("disarm", func() error { return t.Machine.Disarm(ctx) }))
	}
	if err != nil { // the record is damaged: files are restored, devices may be left
		t.Log.Warn("read record of the trial failed", "error", err)
	}
	if err := t.clear(); err != nil {
		return err
	}
	if err := t.use(ctx, r.Back); err != nil {
		return fmt.Errorf("put the confirmed network into use: %w", err)
	}
	t.filterConfirmed(ctx)
	for d, mtu := range r.Sizes {
		if err := t.step("size of "+d, func() error { return t.Machine.SetPacketSize(ctx, d, mtu) }); err != nil {
			// The network is restored and works as far as the card's other MTU
			// permits.
			t.Log.Warn("set MTU of a card back failed", "card", d, "error", err)
		}
	}
	return t.end(ctx)
}

// end ends the trial: it removes the record, and then the timer, which does nothing
// without a record.
func (t *Trial) end(ctx context.Context) error {
	if err := t.step("forget", func() error { return os.Remove(t.Folders.record()) }); err != nil {
		return err
	}
	return t.step("disarm", func() error { return t.Machine.Disarm(ctx) })
}

// errCut wraps what Cut returns.
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

// lock locks out other processes; the kernel releases the lock when this process
// ends.
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
