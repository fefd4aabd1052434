package agent

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/budget"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/cloudinit"
	"github.com/basalt-gpu/basalt/sds"
)

// Options configures an agent.
type Options struct {
	NodeID   api.NodeID
	NodeName string
	DataDir  string // instances' files
	RunDir   string // sockets; a short path, because a socket's path is limited to 107 bytes
	// TPMStates is the folder in which the hypervisor stores the states of TPMs
	// (hypervisor.TPMState); if empty, libvirt's.
	TPMStates string
	Version   string

	Changes  Changes
	Store    Store
	Machines hypervisor.Driver
	Pools    map[string]sds.Driver // by name: api.PoolLocal always, api.PoolShared where there is one; more by SetPool
	VGPUs    VGPUs
	Cards    Cards // nil: no GPU metrics

	// The following are for clusters and nil on a single node.
	Lease    Lease               // nil: always valid
	Fence    Fence               // nil: no fence
	Migrator hypervisor.Migrator // nil: no live migration
	Remote   Remote              // nil: images cannot be fetched from other nodes
	Peers    Peers               // nil: no targets for migrations
	Keys     Keys                // nil: no disk is encrypted or in Ceph
	Ports    Ports               // nil: no networks
	Ceph     Storage             // nil: this node runs no Ceph
	Disks    DiskPools           // nil: no disk of this node is a storage pool
	// WorkerLimits returns the reason why the resources of vGPUs' workers are not
	// limited on this node, or nil. A nil func means that there is nothing to
	// limit.
	WorkerLimits func() error
	// Links returns the node's network as its report has it; it may be nil.
	Links func() Links
	// Encryption returns the stage of the encryption of tunnels, which is empty while it is
	// off, and why this node does not exchange encrypted packets with all others, or nil. A
	// nil func means that there are no tunnels.
	Encryption func() (stage string, err error)
	// Agreement returns an error that names the nodes whose copies of the cluster's
	// state differ without a majority, as far as this node knows, or nil. A nil
	// func means that copies are not compared.
	Agreement func() error
	Backups   Backups // nil: no backups
	// Upgrade returns the progress of this node's upgrade. A nil func means that
	// the node takes no part in upgrades.
	Upgrade func() api.NodeUpgrade
	// Fenced reports whether the fence has ended a run of the instance that began
	// at since; it returns an error if the fence does not answer. A nil func means
	// that there is no fence to ask.
	Fenced func(id api.InstanceID, since time.Time) (bool, error)
	BootID string // of the machine's current boot; if empty, read from the kernel
	// Leaving reports whether the node's guests are being shut down, or have been,
	// because the node shuts down. A nil func means that they never are.
	Leaving func() bool

	Accelerator hypervisor.Accelerator // used until SetAccelerator; if empty, no machine starts until then
	// RefuseEmulation has the planner place no new instance on this node while
	// machines run without KVM.
	RefuseEmulation bool
	// Hardware checks the machine (appliance/node/hardware), given the accelerator
	// (kvm, tcg, or empty) and the nodes that should answer. A nil func disables
	// the checks.
	Hardware    func(ctx context.Context, accelerator string, others []api.Node) []api.HardwareCheck
	VCPUs       int64 // schedulable; if 0, 4 for each CPU of the machine that Runs leaves
	MemoryBytes int64 // schedulable; if 0, the machine's memory less that of Runs
	// Runs returns what the node runs beside its instances, without its memory and
	// GPUs, which the agent knows. A nil func means no Ceph and no networks.
	Runs func() budget.Runs
	// HugePages returns the huge pages that are reserved now, by size. A nil func
	// means none.
	HugePages func() []api.NodeHugePages
	// Cells returns the NUMA cells of the machine as they are now. A nil func means that
	// the node has no CPUs that can be dedicated.
	Cells func() []api.NodeCell
	// ReservedCPUs is the number of CPUs that the node keeps for itself, unless its spec
	// has another. If 0, it is computed from Runs.
	ReservedCPUs int64
	// StorageReserve is the part of the local pool, in bytes, that is not allocated
	// to volumes and images. StorageOvercommit is how much of the rest may be
	// allocated, in percent; 0 means any amount.
	StorageReserve, StorageOvercommit int64
	// SSHAuthority returns the public key of the SSH CA that new guests accept for
	// their instance. A nil func means that there is no SSH gateway.
	SSHAuthority func(context.Context) (string, error)
	// MachineStates reports whether every node of the cluster can read sealed states
	// of machines (appliance/node/machinestate). A nil func means that they can.
	MachineStates func() bool
	// OpenFiles returns how QEMU opens a disk with these files, its own and its
	// backing files: the cache mode and the AIO of hypervisor.Disk. A nil func
	// means QEMU's defaults.
	OpenFiles func(ctx context.Context, paths []string) (cache, aio string)
	ToolsDisc string // ISO with the guest tools; empty for none

	StopGrace   time.Duration // from the power button to the destroy, 0: 60 s
	ReportEvery time.Duration // interval of node and GPU reports, 0: 10 s
	MeterEvery  time.Duration // interval of usage records, 0: 5 min
	KeepUnknown time.Duration // how long what is unknown to the store is kept in a pool (retention.go), 0: a week
	Log         *slog.Logger
	Now         func() time.Time // nil: time.Now
	// NoSync has the agent write files without syncing them, so that they may be
	// lost in a power cut. It is for simulations, which write much.
	NoSync bool
	// WriteSeed writes an instance's cloud-init disc; cloudinit.WriteSeed if nil.
	WriteSeed func(path string, s cloudinit.Seed) error
	// Go runs a long task concurrently; nil means a goroutine.
	Go func(func())
}

// setDefaults sets the defaults of options that were not given.
func (o *Options) setDefaults() {
	if o.StopGrace == 0 {
		o.StopGrace = time.Minute
	}
	if o.ReportEvery == 0 {
		o.ReportEvery = 10 * time.Second
	}
	if o.MeterEvery == 0 {
		o.MeterEvery = 5 * time.Minute
	}
	if o.KeepUnknown == 0 {
		o.KeepUnknown = keepUnknown
	}
	if o.Runs == nil {
		o.Runs = func() budget.Runs { return budget.Runs{} }
	}
	if o.Leaving == nil {
		o.Leaving = func() bool { return false }
	}
	if o.TPMStates == "" {
		o.TPMStates = hypervisor.TPMStates
	}
	if o.MachineStates == nil {
		o.MachineStates = func() bool { return true }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Go == nil {
		o.Go = func(f func()) { go f() }
	}
	if o.WriteSeed == nil {
		o.WriteSeed = cloudinit.WriteSeed
	}
	if o.BootID == "" {
		o.BootID = bootID()
	}
}

// bootID returns the kernel's ID of the current boot, or "" if it cannot be read.
func bootID() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// Links are the parts of a node's network that others need to know.
type Links struct {
	// MTU is the largest MTU in bytes of networks that this node's tunnels can carry, or
	// 0 if that is unknown.
	MTU int64
	// Tunnel is where the tunnels end, and Storage the address of the link with role
	// storage; each may be the zero Addr.
	Tunnel, Storage netip.Addr
}
