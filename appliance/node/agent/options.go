package agent

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/budget"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/cloudinit"
	"github.com/basalt-gpu/basalt/sds"
)

// Options of an agent.
type Options struct {
	NodeID   api.NodeID
	NodeName string
	DataDir  string // instances' files
	RunDir   string // sockets: a short path, because a socket's is at most 107 bytes
	Version  string

	Changes  Changes
	Store    Store
	Machines hypervisor.Driver
	Pools    map[string]sds.Driver // by name: api.PoolLocal always, api.PoolShared where there is one; more by SetPool
	VGPUs    VGPUs
	Cards    Cards // nil: no charts of cards

	// In a cluster; nil on a node alone.
	Lease    Lease               // nil: always valid
	Fence    Fence               // nil: nobody kills
	Migrator hypervisor.Migrator // nil: machines do not move while they run
	Remote   Remote              // nil: there is nobody to fetch images from
	Peers    Peers               // nil: nobody to move to
	Keys     Keys                // nil: no disk is encrypted or in Ceph
	Ports    Ports               // nil: no networks
	Ceph     Storage             // nil: this node runs no Ceph
	Disks    DiskPools           // nil: no disk of this node is a storage pool
	// WorkerLimits returns why nothing bounds what vGPUs' workers take of this
	// node, or nil. nil: there is nothing to bound.
	WorkerLimits func() error
	// NetworkMTU returns the largest MTU of a network that this node's tunnels carry, in
	// bytes; 0: not known. nil: no networks.
	NetworkMTU func() int64
	// Agreement returns which nodes' copies of the cluster's state differ without a
	// majority, as far as this node has found out, or nil. nil: it never does.
	Agreement func() error
	Backups   Backups // nil: no backups
	// Upgrade is how far this node is with an upgrade; nil: it has no part in any.
	Upgrade func() api.NodeUpgrade
	// Fenced reports whether the fence has ended a run of the instance that began
	// at since; an error: it does not answer now. nil: it does not say.
	Fenced func(id api.InstanceID, since time.Time) (bool, error)
	BootID string // of the machine's present boot; empty: the kernel's
	// Leaving reports whether the node's guests are being shut down, or have been,
	// because the node goes down. nil: they never are.
	Leaving func() bool

	Accelerator hypervisor.Accelerator // until SetAccelerator; empty: no machine starts until then
	// RefuseEmulation has the planner place nothing new here while machines run
	// without KVM.
	RefuseEmulation bool
	// Hardware looks at the machine (appliance/node/hardware), knowing how guests run
	// (kvm, tcg, or empty) and which nodes should answer. nil: nothing is looked at.
	Hardware    func(ctx context.Context, accelerator string, others []api.Node) []api.HardwareCheck
	VCPUs       int64 // to give out; 0: 4 for each CPU of the machine
	MemoryBytes int64 // to give out; 0: what is left of the machine's beside Runs
	// Runs is what the node runs beside its instances, but for its memory and GPUs,
	// which the agent knows. nil: nothing of Ceph and networks.
	Runs func() budget.Runs
	// HugePages returns what is reserved of each size of them now. nil: none are.
	HugePages func() []api.NodeHugePages
	// StorageReserve of the node's own pool is given to no volume and no image, in
	// bytes. StorageOvercommit is how much of the rest may be promised, in percent; 0:
	// any amount.
	StorageReserve, StorageOvercommit int64
	// SSHAuthority is the public key of the CA that new guests let in for their
	// instance; nil: there is no SSH gateway.
	SSHAuthority func(context.Context) (string, error)
	// OpenFiles is how QEMU opens a disk of those files, its own and those below:
	// the cache mode and the AIO of hypervisor.Disk. nil: as QEMU does by default.
	OpenFiles func(ctx context.Context, paths []string) (cache, aio string)
	ToolsDisc string // ISO with the guest tools; empty: none

	StopGrace   time.Duration // from the power button to the plug, 0: 60 s
	ReportEvery time.Duration // node and GPU reports, 0: 10 s
	MeterEvery  time.Duration // usage records, 0: 5 min
	KeepUnknown time.Duration // what a pool has and the store does not know (unknown.go), 0: a week
	Log         *slog.Logger
	Now         func() time.Time // nil: time.Now
	// NoSync: what the agent writes need not outlive a power cut. For
	// simulations, which write much.
	NoSync bool
	// WriteSeed writes an instance's cloud-init disc; nil: cloudinit.WriteSeed.
	WriteSeed func(path string, s cloudinit.Seed) error
	// Go runs what takes long beside everything else; nil: a goroutine.
	Go func(func())
}

// setDefaults fills in what was left out.
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

// bootID is the kernel's name of the present boot.
func bootID() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
