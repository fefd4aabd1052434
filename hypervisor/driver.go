package hypervisor

import (
	"context"
	"io"

	"github.com/basalt-gpu/basalt/api"
)

// Driver runs domains on one node. hypervisor/libvirt is the real driver,
// hypervisor/fake the one in memory; hypervisor/drivertest checks both against
// this contract.
//
// Every method is idempotent: if the requested state holds already, it does
// nothing and returns nil. Every method returns when its context ends; the
// operation may still complete afterwards, so check Status. Errors that a user
// may see are *api.Error: not_found (no such domain), wrong_state, in_use,
// invalid, unavailable (the hypervisor, or the agent in the guest, does not
// respond; retry later). Anything else is internal.
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

	// Define creates the domain, or changes its definition. A running domain
	// keeps its present one until its next start.
	Define(ctx context.Context, d Domain) error
	// Load starts QEMU, which opens the disks, with the guest paused (Paused);
	// Start or Resume runs it. So a caller can check once more whether the guest
	// may run, however long starting took.
	Load(ctx context.Context, id api.InstanceID) error
	// Resume continues a Paused domain, loaded or paused otherwise; it does
	// nothing for a running one. It never starts a QEMU: it returns wrong_state
	// if there is none, so a caller whose domain was stopped after its check
	// starts nothing.
	Resume(ctx context.Context, id api.InstanceID) error
	// Start boots the domain, or continues a paused one.
	Start(ctx context.Context, id api.InstanceID) error
	// Pin moves the threads of a domain that has a QEMU to the given CPUs, until it
	// ends. It does nothing for threads that are there already, and for a domain
	// without a QEMU or that is being received (its definition has its CPUs).
	Pin(ctx context.Context, id api.InstanceID, p Pinning) error
	// Shutdown presses the power button and does not wait; the guest may ignore
	// it. It does nothing if the domain does not run.
	Shutdown(ctx context.Context, id api.InstanceID) error
	// Destroy stops the domain at once and waits until QEMU has ended.
	Destroy(ctx context.Context, id api.InstanceID) error
	// Undefine removes a stopped domain (wrong_state while it runs). Its files
	// belong to the caller.
	Undefine(ctx context.Context, id api.InstanceID) error

	// Status returns the state of one domain. A domain that does not exist is
	// Missing, not an error.
	Status(ctx context.Context, id api.InstanceID) (Status, error)
	// List returns every domain of this node, and none of other nodes that share
	// the hypervisor.
	List(ctx context.Context) ([]Status, error)
	// Events returns a channel of events, which is closed when ctx ends. A slow
	// reader loses events and receives a Resync in their place; one is also sent
	// at the start, and after each reconnection to the hypervisor. An event is
	// only a reason to check the state.
	Events(ctx context.Context) (<-chan Event, error)

	// Console opens the serial port of a running domain, for one holder at a time
	// (in_use). Close releases it.
	Console(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error)
	// ConsoleLog returns the end of the serial port's output, at most max bytes
	// (and at most MaxConsoleLog). It stays readable after the domain has
	// stopped.
	ConsoleLog(ctx context.Context, id api.InstanceID, max int64) ([]byte, error)

	// Screen connects to the screen of a running domain, which speaks VNC (RFC
	// 6143); any number of connections is possible. wrong_state if it does not
	// run, or was started without a screen. The caller closes the connection.
	Screen(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error)

	// AgentPing returns nil if the guest agent responds.
	AgentPing(ctx context.Context, id api.InstanceID) error
	// Freeze makes the guest flush its file systems and block changes until Thaw;
	// it returns how many it froze. A guest that stays frozen hangs: the caller
	// must make sure that it is thawed, even if the caller crashes.
	Freeze(ctx context.Context, id api.InstanceID) (int, error)
	// Thaw ends Freeze. It does nothing if the domain does not run.
	Thaw(ctx context.Context, id api.InstanceID) error
	// AgentExec runs a program in the guest as root and waits for it until ctx
	// ends; the program then keeps running.
	AgentExec(ctx context.Context, id api.InstanceID, e Exec) (ExecResult, error)

	// Stats returns the statistics of a running domain, read over QMP.
	Stats(ctx context.Context, id api.InstanceID) (Stats, error)
	// Usage returns the usage of every domain of this node that has a QEMU, in
	// one request. A domain with incomplete values, because an operation on it is
	// in progress, is left out. While an earlier request is still in progress,
	// even one whose caller has given up, it returns unavailable: callers that
	// poll every few seconds do not pile up requests on a hypervisor that hangs.
	Usage(ctx context.Context) ([]Usage, error)
	// Info returns the versions of the hypervisor and the size of the machine.
	Info(ctx context.Context) (Info, error)
	// Abilities returns which machines this node can run. It is empty for a
	// hypervisor whose machines cannot migrate (test:///).
	Abilities(ctx context.Context) (Abilities, error)
	// BaselineCPU returns the best processor that guests can have on all of the
	// given ones: invalid if there is none because their vendors differ.
	BaselineCPU(ctx context.Context, of []CPU) (CPU, error)
	// CheckCPU returns nil if guests can have the processor on this node, and
	// wrong_state if they cannot.
	CheckCPU(ctx context.Context, c CPU) error
	// Close disconnects from the hypervisor. Domains keep running.
	Close() error
}

// NoScreen returns the error for a domain that was started without a screen.
func NoScreen(id api.InstanceID) error {
	return api.Errorf(api.CodeState, "instance %s was started without a screen", id).WithHint("it gets one with its next start")
}

// State is the state of a domain.
type State string

// States.
const (
	Missing State = "Missing"
	Stopped State = "Stopped"
	Running State = "Running"
	Paused  State = "Paused"
	Crashed State = "Crashed"
	// An Incoming domain is being received from another node and does not run
	// yet, an Outgoing one is paused in the last step of a migration (see
	// Migrator). Start rejects both.
	Incoming State = "Incoming"
	Outgoing State = "Outgoing"
)

// Active reports whether there is a QEMU process.
func (s State) Active() bool {
	return s == Running || s == Paused || s == Incoming || s == Outgoing
}

// Status is the state of a domain.
type Status struct {
	ID    api.InstanceID
	State State
	// Reason is why, where known: "the guest panicked", "disk full".
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
	EventAgentDown EventType = "AgentDown" // it has closed its channel
	// EventResync has no ID: events may have been lost, check every domain.
	EventResync EventType = "Resync"
)

// Event is a change of a domain.
type Event struct {
	ID     api.InstanceID
	Type   EventType
	Reason string
}

// Limits of a console log and of the input and output of a program in the
// guest.
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
	// MaxExecOutput, which is also the upper limit.
	MaxOutput int
}

// ExecResult is the outcome of the program.
type ExecResult struct {
	ExitCode       int // meaningless when Signal is not 0
	Signal         int // the signal that killed it; 0: none
	Stdout, Stderr []byte
	Truncated      bool // there was more output
}

// Stats are statistics of a running domain since its start.
type Stats struct {
	QMPStatus string // "running", "paused", "io-error", … as in QMP's query-status
	Disks     []DiskStats
}

// DiskStats are statistics of one disk.
type DiskStats struct {
	Serial                   string // Disk.Serial
	ReadBytes, WriteBytes    int64
	ReadOps, WriteOps        int64
	ReadNanos, WriteNanos    int64
	FlushOps                 int64
	HighestWrittenByteOnHost int64 // highest offset written in the file on the host
}

// Info describes the hypervisor.
type Info struct {
	Libvirt string // version; "fake" for the fake
	QEMU    string // version
	VCPUs   int    // of the machine
	Memory  int64  // bytes of the machine
}
