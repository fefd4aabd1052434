package api

import (
	"cmp"
	"net"
	"slices"
	"strconv"
)

// NodeState is what the cluster thinks of a node; the planner decides it.
type NodeState string

// Node states.
//
//	Ready ─► Suspect ─► Lost ─(given up what is not its own)─► Ready
//	  │ ▲       │(heard again)
//	  ▼ └───────┘
//	Draining ─► Drained ─► Ready (undrained)
const (
	NodeReady    NodeState = "Ready"
	NodeSuspect  NodeState = "Suspect"
	NodeLost     NodeState = "Lost"
	NodeDraining NodeState = "Draining"
	NodeDrained  NodeState = "Drained"
)

// Names of a node's storage pools.
const (
	PoolLocal  = "local"  // a directory of the node's own
	PoolShared = "shared" // a directory that several nodes have
	PoolCeph   = "ceph"   // Ceph's, which every node with status.ceph has
)

const maxPeerAddresses = 4

// NodeMemoryPartName names what a part of a node's memory is kept for.
type NodeMemoryPartName string

// Parts of a node's memory.
const (
	MemorySystem    NodeMemoryPartName = "system"     // kernel, systemd, libvirtd, QEMU's own
	MemoryBasalt    NodeMemoryPartName = "basalt"     // Basalt's daemons
	MemoryNetworks  NodeMemoryPartName = "networks"   // Open vSwitch and OVN
	MemoryOSDs      NodeMemoryPartName = "osds"       // Ceph's disks
	MemoryMonitors  NodeMemoryPartName = "monitors"   // Ceph's
	MemoryManagers  NodeMemoryPartName = "managers"   // Ceph's
	MemoryGPUs      NodeMemoryPartName = "gpus"       // drivers' and daemons', beside the workers of instances
	MemoryPageCache NodeMemoryPartName = "page-cache" // the kernel's, for disks
	MemoryHugePages NodeMemoryPartName = "huge-pages" // reserved for instances that ask for them
)

// ConditionStore is the type of a node's condition that is not true while the
// node has no copy of the cluster's state that it can use.
const ConditionStore = "Store"

// WithoutStore reports whether the node has reported that.
func (n Node) WithoutStore() bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c Condition) bool { return c.Type == ConditionStore && !c.Status })
}

// ConditionAgreement is the type of a node's condition that is not true while the
// node, which led, knows of nodes whose copies of the cluster's state differ without
// a majority that has the same; it names them. It says nothing of the node itself.
const ConditionAgreement = "Agreement"

// ConditionHypervisor is the type of a node's condition that is not true while no
// instance can be started there: libvirtd is away, or no guest boots.
const ConditionHypervisor = "Hypervisor"

// WithoutHypervisor returns why no instance can be started on the node, as it
// has reported; empty: one can.
func (n Node) WithoutHypervisor() string {
	for _, c := range n.Status.Conditions {
		if c.Type == ConditionHypervisor && !c.Status {
			return cmp.Or(c.Message, c.Reason, "the hypervisor is not reachable")
		}
	}
	return ""
}

// WithoutKVM reports whether the node takes no new instances because its guests run
// without KVM and it was not started with --allow-emulation.
func (n Node) WithoutKVM() bool { return n.Status.EmulationRefused && n.Status.Accelerator == "tcg" }

// LocalStorage returns the node's pool local, as it has reported it, whether it reports
// pools or not.
func (n Node) LocalStorage() StoragePool {
	for _, p := range n.Status.Pools {
		if p.Name == PoolLocal {
			return p
		}
	}
	return StoragePool{Name: PoolLocal, SizeBytes: n.Status.StorageBytes, FreeBytes: n.Status.StorageFreeBytes}
}

// Pool returns the node's storage pool of that name, as it has reported it. Every node
// has one named local; empty: that one.
func (n Node) Pool(name string) (p StoragePool, ok bool) {
	if name == "" || name == PoolLocal {
		return n.LocalStorage(), true
	}
	for _, p := range n.Status.Pools {
		if p.Name == name {
			return p, true
		}
	}
	return StoragePool{}, false
}

// PromisedBytes returns what a volume may come to take, however little it takes so far.
func (v Volume) PromisedBytes() int64 { return max(v.Spec.SizeBytes, v.Status.SizeBytes) }

// StorageLimit returns how many bytes a pool of so many may promise: overcommit is in
// percent of what it has beside its reserve.
func StorageLimit(size, reserve, overcommit int64) int64 {
	return int64(float64(max(size-reserve, 0)) / 100 * float64(overcommit))
}

// ValidateNode checks a spec.
func ValidateNode(s NodeSpec) error {
	var bad faults
	if len(s.PeerAddresses) > maxPeerAddresses {
		bad.note(invalid("spec.peerAddresses", "has %d addresses, want at most %d", len(s.PeerAddresses), maxPeerAddresses))
		return bad.err()
	}
	for _, a := range append([]string{s.APIAddress}, s.PeerAddresses...) {
		if a == "" {
			continue
		}
		host, port, err := net.SplitHostPort(a)
		if n, perr := strconv.Atoi(port); err != nil || host == "" || perr != nil || n < 1 || n > 65535 || len(a) > 256 || hasControl(a) {
			bad.note(invalid("spec.peerAddresses", "%q is not HOST:PORT", clip(a)))
		}
	}
	return bad.err()
}

// ChangeNode checks what a user may change: a node's addresses are its own to
// say.
func ChangeNode(old, s NodeSpec) (NodeSpec, error) {
	s.PeerAddresses, s.APIAddress, s.Off = old.PeerAddresses, old.APIAddress, old.Off
	return s, ValidateNode(s)
}

// builtinPool reports whether the name is that of a pool that needs no disk of its own.
func builtinPool(name string) bool {
	return name == PoolLocal || name == PoolShared || name == PoolCeph
}

// DiskPool reports whether a pool of that name is a disk of a node.
func DiskPool(name string) bool { return name != "" && !builtinPool(name) }

// SharedPool reports whether what lies in the pool can be reached from other nodes.
func SharedPool(pool string) bool { return pool == PoolShared || pool == PoolCeph }

// Movable reports whether an instance can run on another node when its own is
// lost: its disk is in a pool that others have too, or may be made anew.
func Movable(in Instance, root Volume) bool {
	if in.Spec.TPM { // what it keeps lies on its node
		return false
	}
	return in.Spec.Ephemeral || SharedPool(root.Assignment.Pool)
}
