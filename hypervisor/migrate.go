package hypervisor

import (
	"context"
	"net"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Migrator moves running domains between nodes. It is an interface of its own
// and not a part of Driver: who only runs machines need not know it, and a
// node whose hypervisor cannot move them has none. hypervisor/libvirt and
// hypervisor/fake implement it beside Driver.
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
// The source decides. As long as its domain exists, the machine is the
// source's, and what the target has may be thrown away; the target lets the
// machine run only when the source's domain is gone (or its node is known to
// be dead). So there are never two, whoever dies when: after a crash the two
// nodes look at their MigrationStatus and
//
//	source Outgoing                              target: DiscardMigration; source: AbortMigration: it runs on
//	source being copied by nobody                AbortMigration: it runs on
//	source Running, Stopped or Crashed           target: DiscardMigration, and Undefine what is not active there
//	source Missing, target Incoming and received target: FinishMigration
//
// In the first of them the order matters: a target that has received the
// machine holds the locks of its shared disks, and without them the source's
// cannot run on. Nothing but the agents' word leads out of there: Migrate itself
// may end like that when it loses the target in the last step.
//
// Nothing listens on the network: see docs/decisions/0006.
type Migrator interface {
	// PrepareMigration makes the target ready for d, its own form of the
	// machine (this node's paths and node id), and clears what an earlier
	// attempt has left. Folders, discs, taps and the disks (the shared ones, and
	// empty ones of the right size and format for those that are copied) exist
	// already. wrong_state when the machine runs here or has a vGPU.
	PrepareMigration(ctx context.Context, d Domain) error
	// AcceptMigration is the target's end of one stream of the tunnel. It
	// returns when the stream has ended and closes conn in any case. wrong_state
	// when nothing is prepared (or the agent has been started since). The caller
	// has checked that it is the source's node that speaks: StreamLibvirt gives
	// command over this node's hypervisor.
	AcceptMigration(ctx context.Context, id api.InstanceID, s Stream, conn net.Conn) error
	// FinishMigration lets a received machine run. wrong_state while it is
	// still being received.
	FinishMigration(ctx context.Context, id api.InstanceID) error
	// DiscardMigration makes the target forget what it prepared and received.
	// wrong_state when the machine runs here. Its files belong to the caller.
	DiscardMigration(ctx context.Context, id api.InstanceID) error

	// Migrate moves the machine and returns when it runs on the target and is
	// forgotten here, or when it has failed. When ctx ends, it aborts. After an
	// error the caller looks at MigrationStatus: mostly it runs on here. When the
	// target was lost in the last step it may stand still (Outgoing). A failure of
	// the very last step (the source is gone, the target has not been told to
	// run) is CodeUnavailable with the domain Missing here; FinishMigration on
	// the target then completes it. wrong_state: it does not run, has a vGPU,
	// or is being moved already.
	Migrate(ctx context.Context, id api.InstanceID, o MigrateOptions) (MigrationResult, error)
	// AbortMigration ends the move of a machine from here and returns when it
	// runs on here. It resumes a machine that a crash has left Outgoing;
	// unavailable while the target holds its disks. When there is nothing to
	// abort, or it is too late, it does nothing.
	AbortMigration(ctx context.Context, id api.InstanceID) error
	// MigrationStatus returns where a move from or to here stands.
	MigrationStatus(ctx context.Context, id api.InstanceID) (MigrationStatus, error)
}

// Stream names one kind of connection from the source to the target.
type Stream string

// Streams.
const (
	StreamLibvirt Stream = "libvirt" // from the source's agent to the target's hypervisor; one
	StreamMemory  Stream = "memory"  // the machine's memory; one
	StreamDisks   Stream = "disks"   // copied disks, over NBD; one or more for each
)

// MaxStreams is how many streams one migration has open at once, at most.
const MaxStreams = 2 + 2*MaxDisks

// Valid is true for the three streams.
func (s Stream) Valid() bool { return s == StreamLibvirt || s == StreamMemory || s == StreamDisks }

// Tunnel opens streams to AcceptMigration on the target. The agent implements
// it over the cluster's connections, which encrypt and know both ends.
type Tunnel interface {
	Open(ctx context.Context, s Stream) (net.Conn, error)
}

// MigrateOptions of Migrator.Migrate.
type MigrateOptions struct {
	// Target is the machine as the target's PrepareMigration was given it: the
	// same devices, the target's paths.
	Target Domain
	Tunnel Tunnel
	// CopyDisks are the serials of the disks that the target does not share.
	CopyDisks []string
	// BandwidthBytesPerSecond bounds the copying, rounded up to whole MiB; 0:
	// no bound.
	BandwidthBytesPerSecond int64
	// MaxDowntime that the last step may take, as QEMU estimates it; 0: 300 ms.
	MaxDowntime time.Duration
	// Progress, when not nil, is told about every half second, by one goroutine
	// at a time. It must not wait.
	Progress func(MigrationProgress)
}

// MigrationPhase is how far a migration is.
type MigrationPhase string

// Phases.
const (
	MigrationPreparing MigrationPhase = "Preparing"
	MigrationCopying   MigrationPhase = "Copying"
	MigrationSwitching MigrationPhase = "Switching" // the machine stands still
)

// MigrationProgress of a migration. The totals grow while the machine changes
// its memory.
type MigrationProgress struct {
	Phase            MigrationPhase
	TransferredBytes int64 // of memory and disks
	RemainingBytes   int64
	TotalBytes       int64
	DiskCopiedBytes  int64 // of the disks alone
	DiskTotalBytes   int64
	ThrottlePercent  int // of its CPU time that is kept from a machine that writes faster than can be copied
}

// MigrationResult of a migration that has succeeded.
type MigrationResult struct {
	Downtime time.Duration // from the source's last instruction to the target's first, as seen from the source
	Elapsed  time.Duration
	// TransferredBytes of memory and disks.
	TransferredBytes int64
}

// MigrationRole is what this node is in a migration.
type MigrationRole string

// Roles.
const (
	MigrationNone   MigrationRole = ""       // nothing is under way here
	MigrationSource MigrationRole = "Source" // a machine of this node is being sent, or stands still since a crash (State Outgoing)
	MigrationTarget MigrationRole = "Target" // a machine is prepared for, or comes in
)

// MigrationStatus describes where a move from or to this node stands.
type MigrationStatus struct {
	Role MigrationRole
	// State of the domain here: Missing on a source means that it is gone for
	// good, on a target that nothing has come yet.
	State State
	// Received: the target has all of it, and it waits for FinishMigration.
	Received bool
	// Progress on a source.
	Progress MigrationProgress
}
