package api

import (
	"cmp"
	"net"
	"slices"
	"strconv"
)

// NodeState is the cluster's view of a node's state. The planner writes it.
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
	PoolLocal  = "local"  // a directory on the node itself
	PoolShared = "shared" // a directory shared by several nodes
	PoolCeph   = "ceph"   // Ceph, on every node with status.ceph; see also CephPool.PoolName
)

const maxPeerAddresses = 4

// NodePartName names a purpose that a part of a node's memory or processors is reserved
// for.
type NodePartName string

// Parts of a node's memory and processors.
const (
	NodePartSystem    NodePartName = "system"     // kernel, systemd, libvirtd, QEMU's own
	NodePartBasalt    NodePartName = "basalt"     // Basalt's daemons
	NodePartNetworks  NodePartName = "networks"   // Open vSwitch and OVN
	NodePartOSDs      NodePartName = "osds"       // Ceph's disks
	NodePartMonitors  NodePartName = "monitors"   // Ceph's
	NodePartManagers  NodePartName = "managers"   // Ceph's
	NodePartGPUs      NodePartName = "gpus"       // of GPU drivers and daemons, without the workers of instances
	NodePartPageCache NodePartName = "page-cache" // the kernel's, for disks
	NodePartHugePages NodePartName = "huge-pages" // reserved for instances that request them
	NodePartOperator  NodePartName = "operator"   // of CPUs: a number that an operator has set
)

// maxReservedCPUs is the largest NodeSpec.ReservedCPUs.
const maxReservedCPUs = 4096

// ConditionStore is the type of the node condition that is not true while the node has
// no usable copy of the cluster's state.
const ConditionStore = "Store"

// WithoutStore reports whether the node has reported that it has no usable copy.
func (n Node) WithoutStore() bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c Condition) bool { return c.Type == ConditionStore && !c.Status })
}

// ConditionAgreement is the type of the node condition that is not true while the node,
// as a leader, knows of nodes whose copies of the cluster's state differ without a
// majority that agrees; the condition names them. It does not concern the node itself.
const ConditionAgreement = "Agreement"

// ConditionEncryption is the type of the node condition that is not true while the node
// does not exchange encrypted packets with all other nodes. It exists while the encryption
// of tunnels is on or being turned on or off; its reason is the stage.
const ConditionEncryption = "EncryptionReady"

// ConditionHypervisor is the type of the node condition that is not true while no
// instance can be started on the node: libvirtd is not running, or no guest boots.
const ConditionHypervisor = "Hypervisor"

// WithoutHypervisor returns the reported reason why no instance can be started on the
// node, or "" if instances can be started.
func (n Node) WithoutHypervisor() string {
	for _, c := range n.Status.Conditions {
		if c.Type == ConditionHypervisor && !c.Status {
			return cmp.Or(c.Message, c.Reason, "the hypervisor is not reachable")
		}
	}
	return ""
}

// WithoutKVM reports whether the node accepts no new instances because its guests run
// without KVM and it was not started with --allow-emulation.
func (n Node) WithoutKVM() bool { return n.Status.EmulationRefused && n.Status.Accelerator == "tcg" }

// LocalStorage returns the node's pool local as last reported, also for a node that
// does not report pools.
func (n Node) LocalStorage() StoragePool {
	for _, p := range n.Status.Pools {
		if p.Name == PoolLocal {
			return p
		}
	}
	return StoragePool{Name: PoolLocal, SizeBytes: n.Status.StorageBytes, FreeBytes: n.Status.StorageFreeBytes}
}

// Pool returns the node's storage pool of that name as last reported. An empty name
// means local, which every node has.
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

// MaxBytes returns the space that a volume may occupy at most, however little it
// occupies now.
func (v Volume) MaxBytes() int64 { return max(v.Spec.SizeBytes, v.Status.SizeBytes) }

// StorageLimit returns how many bytes a pool of the given size may allocate. Overcommit
// is a percentage of the size without the reserve.
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
	if s.ReservedCPUs < 0 || s.ReservedCPUs > maxReservedCPUs {
		bad.note(invalid("spec.reservedCpus", "is %d, want 0 to %d", s.ReservedCPUs, maxReservedCPUs))
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

// ChangeNode returns the new spec with the fields that users cannot change: the node
// itself writes its addresses.
func ChangeNode(old, s NodeSpec) (NodeSpec, error) {
	s.PeerAddresses, s.APIAddress, s.Off = old.PeerAddresses, old.APIAddress, old.Off
	return s, ValidateNode(s)
}

// builtinPool reports whether the pool needs no disk of its own.
func builtinPool(name string) bool {
	return name == PoolLocal || name == PoolShared || InCeph(name)
}

// DiskPool reports whether a pool of that name is on a disk of a node.
func DiskPool(name string) bool { return name != "" && !builtinPool(name) }

// SharedPool reports whether the pool's content can be reached from other nodes.
func SharedPool(pool string) bool { return pool == PoolShared || InCeph(pool) }

// Movable reports whether an instance can run on another node when its own is lost: its
// root disk is in a shared pool, with the state of its TPM, or can be recreated.
func Movable(in Instance, root Volume) bool {
	if in.Spec.TPM && (root.Meta.ID == "" || string(in.Status.StateVolume) != root.Meta.ID) { // the TPM's state is stored on its node only
		return false
	}
	return MayBecomeMovable(in, root)
}

// MayBecomeMovable reports whether an instance is movable, or becomes movable as soon as
// the state of its TPM is stored beside its root volume. Its node treats it as movable
// from the start, so that no run exists that is not fenced when the state is stored.
func MayBecomeMovable(in Instance, root Volume) bool {
	return in.Spec.Ephemeral || SharedPool(root.Assignment.Pool)
}
