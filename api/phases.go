package api

// NetworkPhase is where a network, router, floating IP or load balancer is in
// its life: whoever makes OVN so reports it.
type NetworkPhase string

// Network phases.
const (
	NetworkPending NetworkPhase = "Pending"
	NetworkReady   NetworkPhase = "Ready"
	NetworkFailed  NetworkPhase = "Failed"
)

// SnapshotPhase is where a snapshot is in its life.
type SnapshotPhase string

// Snapshot phases.
const (
	SnapshotPending  SnapshotPhase = "Pending"
	SnapshotCreating SnapshotPhase = "Creating"
	SnapshotReady    SnapshotPhase = "Ready"
	SnapshotDeleting SnapshotPhase = "Deleting"
	SnapshotFailed   SnapshotPhase = "Failed"
)

// TargetPhase reports whether a backup target answers.
type TargetPhase string

// Backup target phases.
const (
	TargetPending TargetPhase = "Pending"
	TargetReady   TargetPhase = "Ready"
	TargetFailed  TargetPhase = "Failed"
)

// BackupPhase is where a backup is in its life.
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

// Ended reports whether nothing is copied any more.
func (p BackupPhase) Ended() bool { return p == BackupSucceeded || p == BackupFailed }

// DiskUse is what a disk is for.
type DiskUse string

// Uses of a disk.
const (
	DiskUnused DiskUse = ""
	DiskCeph   DiskUse = "ceph"
	DiskLocal  DiskUse = "local" // a storage pool of its node
)

// DiskState is what is on a disk now.
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

// FailureDomain is what may fail as one.
type FailureDomain string

// Failure domains.
const (
	DomainHost FailureDomain = "host"
	DomainOSD  FailureDomain = "osd"
)

// CephPhase is how far Ceph is.
type CephPhase string

// Ceph phases.
const (
	CephPending   CephPhase = "Pending"
	CephDeploying CephPhase = "Deploying"
	CephReady     CephPhase = "Ready"
	CephFailed    CephPhase = "Failed"
)

// CephHealth is how well Ceph is.
type CephHealth string

// Ceph's healths.
const (
	CephOK      CephHealth = "OK"
	CephWarning CephHealth = "Warning"
	CephError   CephHealth = "Error"
)

// Direction of what a security rule allows, seen from the instance.
type Direction string

// Directions.
const (
	Ingress Direction = "ingress"
	Egress  Direction = "egress"
)

// Protocol of a security rule or load balancer.
type Protocol string

// Protocols.
const (
	ProtocolTCP   Protocol = "tcp"
	ProtocolUDP   Protocol = "udp"
	ProtocolICMP  Protocol = "icmp"
	ProtocolICMP6 Protocol = "icmp6"
	ProtocolAny   Protocol = "any"
)
