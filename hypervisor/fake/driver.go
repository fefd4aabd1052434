// Package fake implements hypervisor.Driver in memory: domains boot at once or
// on request of the test, respond as a guest agent, and fail on request.
// hypervisor/drivertest checks it against the contract.
//
// One mutex guards all state; no callback is called with it held.
package fake

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Guest defines how the virtual machines behave. The zero value boots at once,
// obeys the power button, echoes its console's input and runs every program
// successfully.
type Guest struct {
	// SlowBoot makes the guest agent respond only after Boot.
	SlowBoot bool
	// IgnoreButton makes Shutdown have no effect.
	IgnoreButton bool
	// Greeting is what the console prints at boot; empty: "booted\r\n".
	Greeting string
	// Exec runs programs; nil: exit code 0 without output.
	Exec func(id api.InstanceID, e hypervisor.Exec) (hypervisor.ExecResult, error)
}

// Driver is the fake. It implements hypervisor.Driver.
type Driver struct {
	guest  Guest
	events hypervisor.Fanout

	mu      sync.Mutex
	domains map[api.InstanceID]*domain
	now     func() time.Time
	fault   func(op string, id api.InstanceID) error
	calls   []string
	closed  bool
	// abilities are what Abilities returns.
	abilities hypervisor.Abilities
	secrets   map[string][]byte // by UUID
	// Migrations from here, prepared migrations to here, and the test's hooks.
	moves    map[api.InstanceID]*move
	prepared map[api.InstanceID]*incoming
	heldBy   map[api.InstanceID]*Driver // CrashReceivedMigration
	step     func(ctx context.Context, id api.InstanceID, p hypervisor.MigrationProgress) error
}

type domain struct {
	spec    hypervisor.Domain // present definition
	running hypervisor.Domain // definition at the last start
	status  hypervisor.Status
	pins    hypervisor.Pinning // of the running machine
	booted  bool
	loaded  bool // paused since Load
	log     []byte
	console *console
	screens map[net.Conn]bool // open connections of viewers

	received bool // an Incoming machine has arrived completely

	sizes  map[string]int64 // of disks that grew while it ran
	holds  bool             // the guest keeps devices that are detached
	frozen bool

	since time.Time // start of its QEMU
}

var (
	_ hypervisor.Driver   = (*Driver)(nil)
	_ hypervisor.Migrator = (*Driver)(nil)
)

// New returns a hypervisor without domains.
func New(g Guest) *Driver {
	if g.Greeting == "" {
		g.Greeting = "booted\r\n"
	}
	return &Driver{
		guest: g, now: time.Now, abilities: DefaultAbilities(), domains: map[api.InstanceID]*domain{}, secrets: map[string][]byte{},
		moves: map[api.InstanceID]*move{}, prepared: map[api.InstanceID]*incoming{}, heldBy: map[api.InstanceID]*Driver{},
	}
}

// enter starts a method: it returns an error for a done context, after Close,
// or for a fault of the test. If it returns nil, the caller holds the lock.
func (d *Driver) enter(ctx context.Context, op string, id api.InstanceID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	fault := d.fault
	d.calls = append(d.calls, op+" "+string(id))
	if d.closed {
		d.mu.Unlock()
		return api.Errorf(api.CodeUnavailable, "the hypervisor is closed")
	}
	if fault == nil {
		return nil
	}
	d.mu.Unlock()
	if err := fault(op, id); err != nil {
		return err
	}
	d.mu.Lock()
	return nil
}

func (d *Driver) find(id api.InstanceID) (*domain, error) {
	if dom, ok := d.domains[id]; ok {
		return dom, nil
	}
	return nil, api.Errorf(api.CodeNotFound, "instance %s has no domain on this node", id)
}

// Define implements hypervisor.Driver.
func (d *Driver) Define(ctx context.Context, spec hypervisor.Domain) error {
	if _, err := spec.XML(); err != nil {
		return err
	}
	if err := d.enter(ctx, "Define", spec.ID); err != nil {
		return err
	}
	defer d.mu.Unlock()
	dom, ok := d.domains[spec.ID]
	if !ok {
		dom = &domain{status: hypervisor.Status{ID: spec.ID, State: hypervisor.Stopped}}
		d.domains[spec.ID] = dom
	}
	dom.spec = clone(spec)
	d.events.Send(hypervisor.Event{ID: spec.ID, Type: hypervisor.EventDefined})
	return nil
}

// Start implements hypervisor.Driver.
func (d *Driver) Start(ctx context.Context, id api.InstanceID) error {
	return d.start(ctx, "Start", id)
}

// Load implements hypervisor.Driver.
func (d *Driver) Load(ctx context.Context, id api.InstanceID) error {
	return d.start(ctx, "Load", id)
}

// Resume implements hypervisor.Driver.
func (d *Driver) Resume(ctx context.Context, id api.InstanceID) error {
	return d.start(ctx, "Resume", id)
}

func (d *Driver) start(ctx context.Context, verb string, id api.InstanceID) error {
	if err := d.enter(ctx, verb, id); err != nil {
		return err
	}
	defer d.mu.Unlock()
	dom, err := d.find(id)
	if err != nil {
		return err
	}
	switch dom.status.State {
	case hypervisor.Running:
		return nil
	case hypervisor.Paused:
		if verb == "Load" {
			return nil
		}
		if dom.loaded { // its guest has not booted yet
			break
		}
		d.set(dom, hypervisor.Running, "", hypervisor.EventResumed)
		return nil
	case hypervisor.Incoming, hypervisor.Outgoing:
		return api.Errorf(api.CodeState, "instance %s is being migrated", id)
	}
	if verb == "Resume" && !dom.status.State.Active() {
		return api.Errorf(api.CodeState, "cannot resume instance %s: domain state is %s, want paused", id, dom.status.State)
	}
	if !dom.loaded {
		if err := d.keys(dom.spec.Disks...); err != nil {
			return err
		}
		dom.running = clone(dom.spec)
		dom.pins = dom.running.Pinning()
	}
	if dom.loaded = verb == "Load"; dom.loaded {
		d.set(dom, hypervisor.Paused, "", hypervisor.EventStarted)
		return nil
	}
	greeting, boots := d.guest.Greeting, true
	switch bootsFrom(dom.running) {
	case fromMedium:
		greeting = "booted from a medium\r\n"
	case fromNothing:
		greeting, boots = "no bootable device\r\n", false
	}
	dom.log = append(dom.log, greeting...)
	d.set(dom, hypervisor.Running, "", hypervisor.EventStarted)
	if boots && !d.guest.SlowBoot {
		d.boot(dom)
	}
	return nil
}

// Pin implements hypervisor.Driver.
func (d *Driver) Pin(ctx context.Context, id api.InstanceID, p hypervisor.Pinning) error {
	if err := p.Check(); err != nil {
		return err
	}
	if err := d.enter(ctx, "Pin", id); err != nil {
		return err
	}
	defer d.mu.Unlock()
	dom, ok := d.domains[id]
	switch {
	case !ok || !dom.status.State.Active() || dom.status.State == hypervisor.Incoming:
		return nil
	case len(p.VCPUs) > 0 && len(p.VCPUs) != dom.running.VCPUs:
		return api.Errorf(api.CodeInvalid, "%d CPUs for the %d vCPUs of instance %s", len(p.VCPUs), dom.running.VCPUs, id).At("vcpus")
	}
	dom.pins = hypervisor.Pinning{VCPUs: slices.Clone(p.VCPUs), Shared: slices.Clone(p.Shared)}
	return nil
}

// Shutdown implements hypervisor.Driver.
func (d *Driver) Shutdown(ctx context.Context, id api.InstanceID) error {
	if err := d.enter(ctx, "Shutdown", id); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if dom, ok := d.domains[id]; ok && dom.status.State == hypervisor.Running && !d.guest.IgnoreButton {
		d.set(dom, hypervisor.Stopped, "the guest shut down", hypervisor.EventStopped)
	}
	return nil
}

// Destroy implements hypervisor.Driver.
func (d *Driver) Destroy(ctx context.Context, id api.InstanceID) error {
	if err := d.enter(ctx, "Destroy", id); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if m := d.moves[id]; m != nil {
		m.cancel(context.Canceled)
	}
	if dom, ok := d.domains[id]; ok && dom.status.State.Active() {
		d.set(dom, hypervisor.Stopped, "it was powered off", hypervisor.EventStopped)
	}
	return nil
}

// Undefine implements hypervisor.Driver.
func (d *Driver) Undefine(ctx context.Context, id api.InstanceID) error {
	if err := d.enter(ctx, "Undefine", id); err != nil {
		return err
	}
	defer d.mu.Unlock()
	dom, ok := d.domains[id]
	if !ok {
		return nil
	}
	if dom.status.State.Active() {
		return api.Errorf(api.CodeState, "instance %s is running, want stopped", id).WithHint("stop it first")
	}
	delete(d.domains, id)
	d.events.Send(hypervisor.Event{ID: id, Type: hypervisor.EventUndefined})
	return nil
}

// Status implements hypervisor.Driver.
func (d *Driver) Status(ctx context.Context, id api.InstanceID) (hypervisor.Status, error) {
	if err := d.enter(ctx, "Status", id); err != nil {
		return hypervisor.Status{}, err
	}
	defer d.mu.Unlock()
	if dom, ok := d.domains[id]; ok {
		return dom.status, nil
	}
	return hypervisor.Status{ID: id, State: hypervisor.Missing}, nil
}

// List implements hypervisor.Driver.
func (d *Driver) List(ctx context.Context) ([]hypervisor.Status, error) {
	if err := d.enter(ctx, "List", ""); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	var all []hypervisor.Status
	for _, id := range slices.Sorted(maps.Keys(d.domains)) {
		all = append(all, d.domains[id].status)
	}
	return all, nil
}

// ConsoleLog implements hypervisor.Driver.
func (d *Driver) ConsoleLog(ctx context.Context, id api.InstanceID, limit int64) ([]byte, error) {
	if err := d.enter(ctx, "ConsoleLog", id); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	dom, err := d.find(id)
	if err != nil {
		return nil, err
	}
	n := min(int64(len(dom.log)), max(limit, 0), hypervisor.MaxConsoleLog)
	return bytes.Clone(dom.log[int64(len(dom.log))-n:]), nil
}

// Console implements hypervisor.Driver.
func (d *Driver) Console(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error) {
	if err := d.enter(ctx, "Console", id); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	dom, err := d.find(id)
	switch {
	case err != nil:
		return nil, err
	case !dom.status.State.Active(), dom.status.State == hypervisor.Incoming:
		return nil, api.Errorf(api.CodeState, "instance %s is not running and has no console", id)
	case dom.console != nil:
		return nil, api.Errorf(api.CodeInUse, "the console of instance %s is in use by another client", id)
	}
	dom.console = newConsole(func(said []byte) {
		d.mu.Lock()
		defer d.mu.Unlock()
		dom.log = append(dom.log, said...)
	}, func(c *console) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if dom.console == c {
			dom.console = nil
		}
	})
	return dom.console, nil
}

// Screen implements hypervisor.Driver.
func (d *Driver) Screen(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error) {
	if err := d.enter(ctx, "Screen", id); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	dom, err := d.find(id)
	switch {
	case err != nil:
		return nil, err
	case !dom.status.State.Active(), dom.status.State == hypervisor.Incoming:
		return nil, api.Errorf(api.CodeState, "instance %s is not running and has no screen", id)
	case dom.running.VNCSocket == "":
		return nil, hypervisor.NoScreen(id)
	}
	near, far := net.Pipe()
	if dom.screens == nil {
		dom.screens = map[net.Conn]bool{}
	}
	dom.screens[far] = true
	go func() {
		_ = serveScreen(far) // the viewer only notices the end of the connection
		_ = far.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(dom.screens, far)
	}()
	return near, nil
}

// AgentPing implements hypervisor.Driver.
func (d *Driver) AgentPing(ctx context.Context, id api.InstanceID) error {
	if err := d.enter(ctx, "AgentPing", id); err != nil {
		return err
	}
	defer d.mu.Unlock()
	return d.agent(id)
}

// AgentExec implements hypervisor.Driver.
func (d *Driver) AgentExec(ctx context.Context, id api.InstanceID, e hypervisor.Exec) (hypervisor.ExecResult, error) {
	if err := e.Validate(); err != nil {
		return hypervisor.ExecResult{}, err
	}
	if err := d.enter(ctx, "AgentExec", id); err != nil {
		return hypervisor.ExecResult{}, err
	}
	err := d.agent(id)
	d.mu.Unlock()
	if err != nil || d.guest.Exec == nil {
		return hypervisor.ExecResult{}, err
	}
	r, err := d.guest.Exec(id, e)
	limit := e.OutputLimit()
	if len(r.Stdout) > limit {
		r.Stdout, r.Truncated = r.Stdout[:limit], true
	}
	if len(r.Stderr) > limit {
		r.Stderr, r.Truncated = r.Stderr[:limit], true
	}
	return r, err
}

func (d *Driver) agent(id api.InstanceID) error {
	dom, err := d.find(id)
	switch {
	case err != nil:
		return err
	case dom.status.State != hypervisor.Running:
		return api.Errorf(api.CodeState, "instance %s is not running", id)
	case !dom.booted:
		return api.Errorf(api.CodeUnavailable, "the guest agent of instance %s is not responding", id)
	}
	return nil
}

// Stats implements hypervisor.Driver.
func (d *Driver) Stats(ctx context.Context, id api.InstanceID) (hypervisor.Stats, error) {
	if err := d.enter(ctx, "Stats", id); err != nil {
		return hypervisor.Stats{}, err
	}
	defer d.mu.Unlock()
	dom, err := d.find(id)
	if err != nil {
		return hypervisor.Stats{}, err
	}
	if !dom.status.State.Active() {
		return hypervisor.Stats{}, api.Errorf(api.CodeState, "instance %s is not running", id)
	}
	s := hypervisor.Stats{QMPStatus: "running"}
	if dom.status.State == hypervisor.Paused {
		s.QMPStatus = "io-error"
	}
	for _, disk := range dom.running.Disks {
		s.Disks = append(s.Disks, hypervisor.DiskStats{Serial: disk.Serial})
	}
	return s, nil
}

// Usage implements hypervisor.Driver. It simulates guests with alternating
// load, see pretend.
func (d *Driver) Usage(ctx context.Context) ([]hypervisor.Usage, error) {
	if err := d.enter(ctx, "Usage", ""); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	var all []hypervisor.Usage
	for _, id := range slices.Sorted(maps.Keys(d.domains)) {
		if dom := d.domains[id]; dom.status.State.Active() {
			all = append(all, pretend(id, dom.running, d.now().Sub(dom.since)))
		}
	}
	return all, nil
}

// Info implements hypervisor.Driver.
func (d *Driver) Info(ctx context.Context) (hypervisor.Info, error) {
	if err := d.enter(ctx, "Info", ""); err != nil {
		return hypervisor.Info{}, err
	}
	defer d.mu.Unlock()
	return hypervisor.Info{Libvirt: "fake", QEMU: "fake", VCPUs: 16, Memory: 64 << 30}, nil
}

// Abilities implements hypervisor.Driver: it returns those of SetAbilities.
func (d *Driver) Abilities(ctx context.Context) (hypervisor.Abilities, error) {
	if err := d.enter(ctx, "Abilities", ""); err != nil {
		return hypervisor.Abilities{}, err
	}
	defer d.mu.Unlock()
	return d.abilities, nil
}

// BaselineCPU implements hypervisor.Driver: it returns the first processor,
// with the features that all have.
func (d *Driver) BaselineCPU(ctx context.Context, of []hypervisor.CPU) (hypervisor.CPU, error) {
	if err := d.enter(ctx, "BaselineCPU", ""); err != nil {
		return hypervisor.CPU{}, err
	}
	defer d.mu.Unlock()
	if len(of) == 0 {
		return hypervisor.CPU{}, api.Errorf(api.CodeInvalid, "a baseline needs at least one processor")
	}
	best := of[0]
	best.Features, best.Disabled = nil, nil
	for _, c := range of {
		if c.Vendor != best.Vendor {
			return hypervisor.CPU{}, api.Errorf(api.CodeInvalid, "processors of %s and %s have no common baseline", best.Vendor, c.Vendor)
		}
	}
	for _, f := range of[0].Features {
		if slices.ContainsFunc(of, func(c hypervisor.CPU) bool { return !slices.Contains(c.Features, f) }) {
			best.Disabled = append(best.Disabled, f)
		} else {
			best.Features = append(best.Features, f)
		}
	}
	return best, nil
}

// CheckCPU implements hypervisor.Driver.
func (d *Driver) CheckCPU(ctx context.Context, c hypervisor.CPU) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := d.enter(ctx, "CheckCPU", ""); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if why := d.abilities.CPU.API().Incompatible(c.API()); why != "" {
		return api.Errorf(api.CodeState, "guests cannot use this processor on this node: %s", why)
	}
	return nil
}

// Events implements hypervisor.Driver.
func (d *Driver) Events(ctx context.Context) (<-chan hypervisor.Event, error) {
	if err := d.enter(ctx, "Events", ""); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	return d.events.Subscribe(ctx), nil
}

// Close implements hypervisor.Driver.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return nil
}

// set changes the state and sends the event. The caller holds the lock.
func (d *Driver) set(dom *domain, s hypervisor.State, reason string, e hypervisor.EventType) {
	if s.Active() && !dom.status.State.Active() {
		dom.since = d.now()
	}
	dom.status.State, dom.status.Reason = s, reason
	if !s.Active() {
		if dom.booted {
			d.events.Send(hypervisor.Event{ID: dom.status.ID, Type: hypervisor.EventAgentDown})
		}
		dom.booted, dom.loaded, dom.frozen, dom.sizes = false, false, false, nil
		if dom.console != nil {
			dom.console.hangUp()
			dom.console = nil
		}
		for c := range dom.screens {
			_ = c.Close()
		}
	}
	d.events.Send(hypervisor.Event{ID: dom.status.ID, Type: e, Reason: reason})
}

// boot makes the guest agent answer. The caller holds the lock.
func (d *Driver) boot(dom *domain) {
	dom.booted = true
	d.events.Send(hypervisor.Event{ID: dom.status.ID, Type: hypervisor.EventAgentUp})
}
