package hypervisor

import (
	"context"
	"io"

	"github.com/basalt-gpu/basalt/api"
)

// Driver makes domains on one node. hypervisor/libvirt is the real one,
// hypervisor/fake the one in memory; hypervisor/drivertest holds both to what
// is written here.
//
// Every verb is idempotent: when what it asks for holds already, it does
// nothing and returns nil. Every verb returns when its context ends; what it
// had asked for may then still happen, so ask State again. Errors that a
// user may see are *api.Error: not_found (no such domain), wrong_state,
// in_use, invalid, unavailable (the hypervisor, or the agent in the guest,
// does not answer; try later). Anything else is internal.
//
//	           Define            Start             guest off, Destroy
//	Missing ──────────► Stopped ────────► Running ───────────────────► Stopped
//	   ▲                  │  ▲               │  ▲ Start
//	   └──────────────────┘  │               ▼  │
//	        Undefine         │             Paused (disk full)
//	                         │ Start         │
//	                      Crashed ◄──────────┘ QEMU died or the guest panicked
type Driver interface {
	Devices

	// Define makes the domain, or changes it. What runs goes on as it is
	// until its next start.
	Define(ctx context.Context, d Domain) error
	// Load starts QEMU, which takes the disks, and lets the guest stand still
	// (Paused): Start lets it go. So whoever starts can look once more whether
	// it still may, however long starting took.
	Load(ctx context.Context, id api.InstanceID) error
	// Resume lets a Paused domain go on, loaded or paused otherwise; what runs
	// goes on. It never makes a QEMU: wrong_state when there is none, so who
	// looked whether it may go on, and was stopped meanwhile, starts nothing.
	Resume(ctx context.Context, id api.InstanceID) error
	// Start boots it. A paused domain goes on.
	Start(ctx context.Context, id api.InstanceID) error
	// Shutdown presses the power button and does not wait; the guest may
	// ignore it. Nothing to do for what does not run.
	Shutdown(ctx context.Context, id api.InstanceID) error
	// Destroy pulls the plug and waits until QEMU is gone.
	Destroy(ctx context.Context, id api.InstanceID) error
	// Undefine forgets a stopped domain (wrong_state while it runs). Its files
	// belong to the caller.
	Undefine(ctx context.Context, id api.InstanceID) error

	// Status of one domain. A domain that does not exist is Missing, not an
	// error.
	Status(ctx context.Context, id api.InstanceID) (Status, error)
	// List is every domain of this node, and nobody else's on the machine.
	List(ctx context.Context) ([]Status, error)
	// Events until ctx ends, when the channel is closed. A slow reader loses
	// events but gets a Resync in their place; one comes first, and after each
	// reconnection to the hypervisor. An event is a reason to look, not truth.
	Events(ctx context.Context) (<-chan Event, error)

	// Console is the serial port of a running domain, for one holder at a time
	// (in_use). Close it to let it go.
	Console(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error)
	// ConsoleLog is the end of what the serial port said, at most max bytes
	// (and at most MaxConsoleLog). It stays readable when the domain has
	// stopped.
	ConsoleLog(ctx context.Context, id api.InstanceID, max int64) ([]byte, error)

	// Screen is a connection to the screen of a running domain, for whoever
	// speaks VNC (RFC 6143); any number of them. wrong_state when it does not
	// run, or was started without one. Close it to let it go.
	Screen(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error)

	// AgentPing returns nil when the guest agent answers.
	AgentPing(ctx context.Context, id api.InstanceID) error
	// Freeze makes the guest write out its file systems and hold back what
	// would change them, until Thaw; it says how many it froze. Frozen for
	// long, a guest hangs: whoever freezes sees to it that it is thawed,
	// whatever happens to him.
	Freeze(ctx context.Context, id api.InstanceID) (int, error)
	// Thaw ends Freeze. What does not run is not frozen.
	Thaw(ctx context.Context, id api.InstanceID) error
	// AgentExec runs a program in the guest as its root and waits for it until
	// ctx ends; the program is then left running.
	AgentExec(ctx context.Context, id api.InstanceID, e Exec) (ExecResult, error)

	// Stats of a running domain, read over QMP.
	Stats(ctx context.Context, id api.InstanceID) (Stats, error)
	// Usage of every domain of this node that has a QEMU, in one question. One
	// of which not all can be said now, because something is being done to it,
	// is left out. While an earlier question is still under way, also one that
	// was given up, the answer is unavailable: who asks every few seconds does
	// not pile up on a hypervisor that hangs.
	Usage(ctx context.Context) ([]Usage, error)
	// Info returns what runs the domains.
	Info(ctx context.Context) (Info, error)
	// Abilities returns which machines can be made here. A hypervisor that makes none
	// that could move (test:///) has none.
	Abilities(ctx context.Context) (Abilities, error)
	// BaselineCPU is the best processor that each of these can be given as: invalid,
	// where there is none because they are of several vendors.
	BaselineCPU(ctx context.Context, of []CPU) (CPU, error)
	// CheckCPU returns nil when guests can be given the processor here, and
	// wrong_state when they cannot.
	CheckCPU(ctx context.Context, c CPU) error
	// Close lets the hypervisor go. Domains run on.
	Close() error
}

// NoScreen is the error for a domain that was started without a screen.
func NoScreen(id api.InstanceID) error {
	return api.Errorf(api.CodeState, "instance %s was started without a screen", id).WithHint("it gets one with its next start")
}

// State of a domain.
type State string

// States.
const (
	Missing State = "Missing"
	Stopped State = "Stopped"
	Running State = "Running"
	Paused  State = "Paused"
	Crashed State = "Crashed"
	// Incoming comes from another node and does not run yet, Outgoing stands
	// still in the last step of a move (see Migrator). Start refuses both.
	Incoming State = "Incoming"
	Outgoing State = "Outgoing"
)

// Active is true while there is a QEMU process.
func (s State) Active() bool {
	return s == Running || s == Paused || s == Incoming || s == Outgoing
}

// Status of a domain.
type Status struct {
	ID    api.InstanceID
	State State
	// Reason in words, where there is one: "the guest panicked", "disk full".
	Reason string
}

// EventType describes what happened.
type EventType string

// Event types.
const (
	EventDefined   EventType = "Defined"
	EventUndefined EventType = "Undefined"
	EventStarted   EventType = "Started"
	EventStopped   EventType = "Stopped"
	EventCrashed   EventType = "Crashed"
	EventPaused    EventType = "Paused"
	EventResumed   EventType = "Resumed"
	EventRebooted  EventType = "Rebooted"
	EventAgentUp   EventType = "AgentUp"   // the guest agent has opened its channel
	EventAgentDown EventType = "AgentDown" // … and has closed it
	// EventResync has no ID: events may have been missed, look at everything.
	EventResync EventType = "Resync"
)

// Event is one thing that happened to a domain.
type Event struct {
	ID     api.InstanceID
	Type   EventType
	Reason string
}

// Limits of a console log and of what a program in the guest takes and says.
const (
	MaxConsoleLog = 4 << 20
	MaxExecInput  = 1 << 20
	MaxExecOutput = 4 << 20
	MaxExecArgs   = 256
)

// Exec is a program to run in the guest.
type Exec struct {
	Argv []string // Argv[0] is looked up in the agent's PATH
	Env  []string // KEY=value; nil: the agent's own
	// Stdin is at most MaxExecInput bytes.
	Stdin []byte
	// MaxOutput is the most bytes kept of each of stdout and stderr; 0 means
	// MaxExecOutput, which is also the most it can be.
	MaxOutput int
}

// ExecResult is how the program ended.
type ExecResult struct {
	ExitCode       int // meaningless when Signal is not 0
	Signal         int // that killed it; 0: none
	Stdout, Stderr []byte
	Truncated      bool // there was more output
}

// Stats of a running domain, since it was started.
type Stats struct {
	QMPStatus string // "running", "paused", "io-error", … as query-status says it
	Disks     []DiskStats
}

// DiskStats of one disk.
type DiskStats struct {
	Serial                   string // Disk.Serial
	ReadBytes, WriteBytes    int64
	ReadOps, WriteOps        int64
	ReadNanos, WriteNanos    int64
	FlushOps                 int64
	HighestWrittenByteOnHost int64 // how far the file on the host has been written
}

// Info about the hypervisor.
type Info struct {
	Libvirt string // version; "fake" for the fake
	QEMU    string // version
	VCPUs   int    // of the machine
	Memory  int64  // bytes of the machine
}
