package hypervisor

import (
	"context"
	"net"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Migrator moves running domains between nodes. It is a separate interface and
// not a part of Driver: code that only runs machines does not need it, and a
// hypervisor that cannot migrate does not have it. hypervisor/libvirt and
// hypervisor/fake implement both.
//
//	source                                target
//	Running                               Missing
//	   │                                     │ PrepareMigration
//	   │ Migrate ───── the tunnel ─────────► │ AcceptMigration, once a stream
//	Running, being copied                 Incoming   (it has never run)
//	   │ ▲ any failure, AbortMigration       │ any failure, DiscardMigration
//	Outgoing, the last step                  │──────────────────────────► Missing
//	   │                                     │
//	Missing ◄── the point of no return ──► Incoming, received
//	                                         │ Migrate itself, or FinishMigration
//	                                      Running
//
// The source decides. As long as its domain exists, the machine belongs to the
// source, and what the target has may be discarded; the target runs the
// machine only when the source's domain has ended (or its node is known to be
// dead). So the machine never runs twice, whichever process dies at whatever
// time: after a crash the two nodes read their MigrationStatus and act:
//
//	source Outgoing                              target: DiscardMigration; source: AbortMigration: it runs on
//	source Running, no migration in progress     AbortMigration: it runs on
//	source Running, Stopped or Crashed           target: DiscardMigration, and Undefine what is not active there
//	source Missing, target Incoming and received target: FinishMigration
//
// In the first case the order matters: a target that has received the machine
// holds the locks of its shared disks, and without them the source's cannot
// continue. Only the agents can resolve that state: Migrate itself may end in
// it when it loses the target in the last step.
//
// Nothing listens on the network: see docs/decisions/0006.
type Migrator interface {
	// PrepareMigration prepares the target for d, the machine with this node's
	// paths and node ID, and removes the remains of an earlier attempt.
	// Directories, discs, taps and the disks (the shared ones, and empty ones of
	// the right size and format for those that are copied) must exist already.
	// wrong_state if the machine runs here or has a vGPU.
	PrepareMigration(ctx context.Context, d Domain) error
	// AcceptMigration serves one stream of the tunnel on the target. It returns
	// when the stream has ended and closes conn in any case. wrong_state if no
	// migration is prepared (or the agent was restarted since). The caller must
	// have authenticated the source's node: StreamLibvirt gives control over this
	// node's hypervisor.
	AcceptMigration(ctx context.Context, id api.InstanceID, s Stream, conn net.Conn) error
	// FinishMigration runs a received machine. wrong_state while it is still
	// being received.
	FinishMigration(ctx context.Context, id api.InstanceID) error
	// DiscardMigration removes what the target prepared and received. wrong_state
	// if the machine runs here. Its files belong to the caller.
	DiscardMigration(ctx context.Context, id api.InstanceID) error

	// Migrate migrates the machine and returns when it runs on the target and
	// does not exist here any more, or when the migration has failed. When ctx
	// ends, it aborts. After an error the caller checks MigrationStatus: in most
	// cases the machine continues here. If the target was lost in the last step
	// it may be paused (Outgoing). A failure at the very end (the source has
	// ended, the target has not been told to run) is CodeUnavailable with the
	// domain Missing here; FinishMigration on the target then completes the
	// migration. wrong_state: the machine does not run, has a vGPU, or is being
	// migrated already.
	Migrate(ctx context.Context, id api.InstanceID, o MigrateOptions) (MigrationResult, error)
	// AbortMigration ends the migration of a machine from here and returns when
	// the machine continues here. It resumes a machine that a crash has left
	// Outgoing; unavailable while the target holds its disks. It does nothing if
	// there is nothing to abort, or if it is too late.
	AbortMigration(ctx context.Context, id api.InstanceID) error
	// MigrationStatus returns the state of a migration from or to this node.
	MigrationStatus(ctx context.Context, id api.InstanceID) (MigrationStatus, error)
}

// Stream is a kind of connection from the source to the target.
type Stream string

// Streams.
const (
	StreamLibvirt Stream = "libvirt" // from the source's agent to the target's hypervisor; one
	StreamMemory  Stream = "memory"  // the machine's memory; one
	StreamDisks   Stream = "disks"   // copied disks, over NBD; one or more for each
)

// MaxStreams is how many streams one migration has open at most.
const MaxStreams = 2 + 2*MaxDisks

// Valid reports whether s is one of the three streams.
func (s Stream) Valid() bool { return s == StreamLibvirt || s == StreamMemory || s == StreamDisks }

// Tunnel opens streams to AcceptMigration on the target. The agent implements
// it over the cluster's connections, which are encrypted and authenticated.
type Tunnel interface {
	Open(ctx context.Context, s Stream) (net.Conn, error)
}

// MigrateOptions are the options of Migrator.Migrate.
type MigrateOptions struct {
	// Target is the machine as passed to the target's PrepareMigration: the same
	// devices, the target's paths.
	Target Domain
	Tunnel Tunnel
	// CopyDisks are the serials of the disks that the target does not share.
	CopyDisks []string
	// BandwidthBytesPerSecond limits the copying, rounded up to whole MiB; 0: no
	// limit.
	BandwidthBytesPerSecond int64
	// MaxDowntime is the longest duration of the last step, as QEMU estimates it;
	// 0: 300 ms.
	MaxDowntime time.Duration
	// Progress, when not nil, is called about every half second, by one goroutine
	// at a time. It must not block.
	Progress func(MigrationProgress)
}

// MigrationPhase is the phase of a migration.
type MigrationPhase string

// Phases.
const (
	MigrationPreparing MigrationPhase = "Preparing"
	MigrationCopying   MigrationPhase = "Copying"
	MigrationSwitching MigrationPhase = "Switching" // the machine is paused
)

// MigrationProgress is the progress of a migration. The totals grow while the
// machine changes its memory.
type MigrationProgress struct {
	Phase            MigrationPhase
	TransferredBytes int64 // of memory and disks
	RemainingBytes   int64
	TotalBytes       int64
	DiskCopiedBytes  int64 // of the disks alone
	DiskTotalBytes   int64
	ThrottlePercent  int // share of its CPU time withheld from a machine that writes faster than can be copied
}

// MigrationResult is the outcome of a successful migration.
type MigrationResult struct {
	Downtime time.Duration // from the source's last instruction to the target's first, as seen from the source
	Elapsed  time.Duration
	// TransferredBytes of memory and disks.
	TransferredBytes int64
}

// MigrationRole is this node's role in a migration.
type MigrationRole string

// Roles.
const (
	MigrationNone   MigrationRole = ""       // no migration from or to this node
	MigrationSource MigrationRole = "Source" // a machine of this node is being sent, or is paused since a crash (State Outgoing)
	MigrationTarget MigrationRole = "Target" // a migration is prepared, or a machine is being received
)

// MigrationStatus describes a migration from or to this node.
type MigrationStatus struct {
	Role MigrationRole
	// State of the domain here: Missing on a source means that it has ended for
	// good, on a target that nothing has arrived yet.
	State State
	// Received reports that the target has everything, and waits for
	// FinishMigration.
	Received bool
	// Progress is set on a source only.
	Progress MigrationProgress
}
