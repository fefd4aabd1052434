package api

// NetworkPhase is the phase of a network, router, floating IP or load balancer. The
// controller that writes it to OVN reports the phase.
type NetworkPhase string

// Network phases.
const (
	NetworkPending NetworkPhase = "Pending"
	NetworkReady   NetworkPhase = "Ready"
	NetworkFailed  NetworkPhase = "Failed"
)

// SnapshotPhase is the phase of a snapshot.
type SnapshotPhase string

// Snapshot phases.
const (
	SnapshotPending  SnapshotPhase = "Pending"
	SnapshotCreating SnapshotPhase = "Creating"
	SnapshotReady    SnapshotPhase = "Ready"
	SnapshotDeleting SnapshotPhase = "Deleting"
	SnapshotFailed   SnapshotPhase = "Failed"
)

// TargetPhase reports whether a backup target is reachable.
type TargetPhase string

// Backup target phases.
const (
	TargetPending TargetPhase = "Pending"
	TargetReady   TargetPhase = "Ready"
	TargetFailed  TargetPhase = "Failed"
)

// BackupPhase is the phase of a backup.
//
//	Pending ─► Running ─► Succeeded ─► Deleting
//	   └──────────┴─────► Failed ───────┘
type BackupPhase string

// Backup phases.
const (
	BackupPending   BackupPhase = "Pending"
	BackupRunning   BackupPhase = "Running"
	BackupSucceeded BackupPhase = "Succeeded"
	BackupFailed    BackupPhase = "Failed"
	BackupDeleting  BackupPhase = "Deleting"
)

// Ended reports whether the backup is no longer being copied.
func (p BackupPhase) Ended() bool { return p == BackupSucceeded || p == BackupFailed }

// DiskUse is the purpose of a disk.
type DiskUse string

// Uses of a disk.
const (
	DiskUnused DiskUse = ""
	DiskCeph   DiskUse = "ceph"
	DiskCephDB DiskUse = "ceph-db" // databases of other disks that Ceph uses
	DiskLocal  DiskUse = "local"   // a storage pool of its node
)

// DiskState is the current state of a disk.
//
//	Free ─(use: ceph, local)─► Preparing ─► Ready ─(use: nothing)─► Draining ─► Free
//	InUse: something else has it          └─► Failed
type DiskState string

// Disk states.
const (
	DiskFree      DiskState = "Free"
	DiskInUse     DiskState = "InUse"
	DiskPreparing DiskState = "Preparing"
	DiskReady     DiskState = "Ready"
	DiskDraining  DiskState = "Draining"
	DiskFailed    DiskState = "Failed"
)

// DeviceClass is the kind of a disk that Ceph uses, by which pools choose their disks.
type DeviceClass string

// Device classes, with Ceph's names.
const (
	ClassHDD  DeviceClass = "hdd"
	ClassSSD  DeviceClass = "ssd"
	ClassNVMe DeviceClass = "nvme"
)

// FailureDomain is the unit that may fail as a whole.
type FailureDomain string

// Failure domains.
const (
	DomainHost FailureDomain = "host"
	DomainOSD  FailureDomain = "osd"
)

// CephPhase is the phase of the Ceph cluster's deployment.
type CephPhase string

// Ceph phases.
const (
	CephPending   CephPhase = "Pending"
	CephDeploying CephPhase = "Deploying"
	CephReady     CephPhase = "Ready"
	CephFailed    CephPhase = "Failed"
)

// CephHealth is the health of the Ceph cluster.
type CephHealth string

// Health states of Ceph.
const (
	CephOK      CephHealth = "OK"
	CephWarning CephHealth = "Warning"
	CephError   CephHealth = "Error"
)

// Direction is the direction of the traffic that a security rule allows, seen from the
// instance.
type Direction string

// Directions.
const (
	Ingress Direction = "ingress"
	Egress  Direction = "egress"
)

// Protocol is the protocol of a security rule or load balancer.
type Protocol string

// Protocols.
const (
	ProtocolTCP   Protocol = "tcp"
	ProtocolUDP   Protocol = "udp"
	ProtocolICMP  Protocol = "icmp"
	ProtocolICMP6 Protocol = "icmp6"
	ProtocolAny   Protocol = "any"
)
