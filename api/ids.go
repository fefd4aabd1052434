package api

// Typed IDs prevent passing a volume's ID where an instance's is expected. An ID is a
// prefix and 12 random hex digits: "ins-4f9c2a7be01d".
type (
	// OrganizationID is an Organization's id.
	OrganizationID string
	// ProjectID is a Project's id.
	ProjectID string
	// UserID is a User's id.
	UserID string
	// GroupID is a Group's id.
	GroupID string
	// IdentityProviderID is an IdentityProvider's id.
	IdentityProviderID string
	// NodeID is a Node's id.
	NodeID string
	// GPUID is a GPU's id.
	GPUID string
	// GPUPoolID is a GPUPool's id.
	GPUPoolID string
	// AppID is an App's id.
	AppID string
	// FlavorID is a Flavor's id.
	FlavorID string
	// ImageID is an Image's id.
	ImageID string
	// VolumeID is a Volume's id.
	VolumeID string
	// InstanceID is an Instance's id.
	InstanceID string
	// InvoiceID is an Invoice's id.
	InvoiceID string
	// VoucherID is a Voucher's id.
	VoucherID string
	// CheckoutID is a Checkout's id.
	CheckoutID string
	// CardID is a Card's id.
	CardID string
	// PaymentID is a Payment's id.
	PaymentID string
	// RefundID is a Refund's id.
	RefundID string
	// VATCheckID is a VATCheck's id.
	VATCheckID string
	// DisputeID is a Dispute's id.
	DisputeID string
	// PriceBookID is a PriceBook's id.
	PriceBookID string
	// MigrationID is a Migration's id.
	MigrationID string
	// SSHKeyID is a SSHKey's id.
	SSHKeyID string
	// JoinTokenID is a JoinToken's id.
	JoinTokenID string
	// NetworkID is a Network's id.
	NetworkID string
	// SecurityGroupID is a SecurityGroup's id.
	SecurityGroupID string
	// ExternalNetworkID is an ExternalNetwork's id.
	ExternalNetworkID string
	// RouterID is a Router's id.
	RouterID string
	// FloatingIPID is a FloatingIP's id.
	FloatingIPID string
	// LoadBalancerID is a LoadBalancer's id.
	LoadBalancerID string
	// SnapshotID is a Snapshot's id.
	SnapshotID string
	// BackupTargetID is a BackupTarget's id.
	BackupTargetID string
	// BackupID is a Backup's id.
	BackupID string
	// DiskID is a Disk's id.
	DiskID string
	// CephClusterID is a CephCluster's id.
	CephClusterID string
)

// FinalizerAgent keeps an object until the agent of its node has removed everything
// that it created for it.
const FinalizerAgent = "agent"

// FinalizerMeter keeps an object until the planner has recorded its final usage.
const FinalizerMeter = "meter"

// Power is the desired power state of an instance.
type Power string

// Power states.
const (
	PowerRunning Power = "Running"
	PowerStopped Power = "Stopped"
)

// GPUTier is the priority of a virtual GPU; empty means TierStandard.
type GPUTier string

// Tiers of virtual GPUs.
const (
	TierPremium  GPUTier = "premium"
	TierStandard GPUTier = "standard"
	TierBasic    GPUTier = "basic"
)

// Meter names a measured quantity of usage, including its unit.
type Meter string

// Meters.
const (
	MeterVCPU       Meter = "vcpu-seconds"
	MeterMemory     Meter = "memory-byte-seconds"
	MeterVolume     Meter = "volume-byte-seconds"
	MeterSnapshot   Meter = "snapshot-byte-seconds"
	MeterAddress    Meter = "address-seconds"
	MeterEgress     Meter = "egress-bytes"
	MeterGPU        Meter = "gpu-nanoseconds" // of vGPUs of the standard tier
	MeterGPUPremium Meter = "gpu-premium-nanoseconds"
	MeterGPUBasic   Meter = "gpu-basic-nanoseconds"
	MeterVRAM       Meter = "vram-byte-seconds"
	MeterCopy       Meter = "gpu-copy-bytes"
	MeterLaunch     Meter = "gpu-launches"
	// MeterGPUShare counts reserved hundredths of a GPU's time, multiplied by seconds.
	MeterGPUShare Meter = "gpu-share-seconds"
)

// TierMeter returns the meter for the GPU time of a tier.
func TierMeter(t GPUTier) Meter {
	switch t {
	case TierPremium:
		return MeterGPUPremium
	case TierBasic:
		return MeterGPUBasic
	}
	return MeterGPU
}

// TierOfMeter returns the tier whose GPU time a meter counts; false if it does not
// count GPU time.
func TierOfMeter(m Meter) (GPUTier, bool) {
	switch m {
	case MeterGPU:
		return TierStandard, true
	case MeterGPUPremium:
		return TierPremium, true
	case MeterGPUBasic:
		return TierBasic, true
	}
	return "", false
}

// Phases of an image, a volume and an instance.
type (
	// ImagePhase is the phase of an image's life cycle.
	ImagePhase string
	// VolumePhase is the phase of a volume's life cycle.
	VolumePhase string
	// InstancePhase is the phase of an instance's life cycle.
	InstancePhase string
)

// Image phases.
const (
	ImagePending   ImagePhase = "Pending"
	ImageImporting ImagePhase = "Importing"
	ImageReady     ImagePhase = "Ready"
	ImageFailed    ImagePhase = "Failed"
)

// Volume phases.
const (
	VolumePending  VolumePhase = "Pending"
	VolumeCreating VolumePhase = "Creating"
	VolumeReady    VolumePhase = "Ready"
	VolumeDeleting VolumePhase = "Deleting"
	VolumeFailed   VolumePhase = "Failed"
)

// Instance phases. The life cycle is described in appliance/node/agent/instance.go.
const (
	InstancePending  InstancePhase = "Pending"
	InstanceCreating InstancePhase = "Creating"
	InstanceStarting InstancePhase = "Starting"
	InstanceRunning  InstancePhase = "Running"
	InstanceStopping InstancePhase = "Stopping"
	InstanceStopped  InstancePhase = "Stopped"
	InstanceDeleting InstancePhase = "Deleting"
	InstanceFailed   InstancePhase = "Failed"
)
