package api

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Kind names a type of object.
type Kind string

// The kinds.
const (
	KindOrganization     Kind = "Organization"
	KindProject          Kind = "Project"
	KindAPIKey           Kind = "APIKey"
	KindUser             Kind = "User"
	KindGroup            Kind = "Group"
	KindNode             Kind = "Node"
	KindIdentityProvider Kind = "IdentityProvider"
	KindGPU              Kind = "GPU"
	KindGPUPool          Kind = "GPUPool"
	KindApp              Kind = "App"
	KindFlavor           Kind = "Flavor"
	KindImage            Kind = "Image"
	KindVolume           Kind = "Volume"
	KindInstance         Kind = "Instance"
	KindUsageRecord      Kind = "UsageRecord"
	KindInvoice          Kind = "Invoice"
	KindCreditNote       Kind = "CreditNote"
	KindPayment          Kind = "Payment"
	KindRefund           Kind = "Refund"
	KindDispute          Kind = "Dispute"
	KindVATCheck         Kind = "VATCheck"
	KindBudget           Kind = "Budget"
	KindPriceBook        Kind = "PriceBook"
	KindCheckout         Kind = "Checkout"
	KindCard             Kind = "Card"
	KindVoucher          Kind = "Voucher"
	KindMigration        Kind = "Migration"
	KindJoinToken        Kind = "JoinToken"
	KindWebhook          Kind = "Webhook"
	KindSupportGrant     Kind = "SupportGrant"
	KindPortalDomain     Kind = "PortalDomain"

	KindNetwork         Kind = "Network"
	KindSecurityGroup   Kind = "SecurityGroup"
	KindExternalNetwork Kind = "ExternalNetwork"
	KindRouter          Kind = "Router"
	KindFloatingIP      Kind = "FloatingIP"
	KindLoadBalancer    Kind = "LoadBalancer"
	KindSnapshot        Kind = "Snapshot"
	KindBackupTarget    Kind = "BackupTarget"
	KindBackup          Kind = "Backup"
	KindDisk            Kind = "Disk"
	KindCephCluster     Kind = "CephCluster"
	KindUpgrade         Kind = "Upgrade"

	// KindMailSuppression is an address from which mail was returned.
	KindMailSuppression Kind = "MailSuppression"
	// KindMailMessage is a message of the outbox.
	KindMailMessage Kind = "MailMessage"

	KindService Kind = "Service"
	KindSSHKey  Kind = "SSHKey"

	// KindClusterCA is internal: the CA that signs the cluster's certificates. The API
	// neither shows nor accepts it.
	KindClusterCA Kind = "ClusterCA"
	// KindVolumeKeys is internal: the keys that wrap the keys of encrypted volumes.
	KindVolumeKeys Kind = "VolumeKeys"
	// KindAppAuthority is internal: the key that signs access tokens for the app
	// gateway.
	KindAppAuthority Kind = "AppAuthority"
	// KindSSHAuthority is internal: the SSH gateway's host key, and the CA that signs
	// the certificates with which it signs in to guests.
	KindSSHAuthority Kind = "SSHAuthority"
	// KindSSHGuest is internal: the known host key of an instance, and who signed in to
	// it last.
	KindSSHGuest Kind = "SSHGuest"
	// KindCephKeys is internal: the keys of Ceph's daemons and clients.
	KindCephKeys Kind = "CephKeys"
	// KindSession is internal: the API shows users only their own sessions.
	KindSession Kind = "Session"
	// KindAuditCheck is internal: the result of the leader's last verification of the
	// audit trail.
	KindAuditCheck Kind = "AuditCheck"
	// KindLoginLink is internal: a token that signs a user in once.
	KindLoginLink Kind = "LoginLink"
	// KindBranding is internal: its objects, one of the cluster and one of each reseller
	// that has its own, are shown by the API as Branding.
	KindBranding Kind = "Branding"
	// KindMailSettings is internal: its objects are shown by the API as MailSettings.
	KindMailSettings Kind = "MailSettings"
	// KindPaymentSettings is internal: its only object is shown by the API as
	// PaymentSettings.
	KindPaymentSettings Kind = "PaymentSettings"
	// KindTopUp is internal: its objects are shown by the API as TopUp, one for each
	// organization.
	KindTopUp Kind = "TopUp"
	// KindAutoPay is internal: its objects are shown by the API as AutoPay, one for each
	// organization.
	KindAutoPay Kind = "AutoPay"
	// KindTaxSettings is internal: its objects, one of the operator and one of each reseller
	// that has its own, are shown by the API as TaxSettings.
	KindTaxSettings Kind = "TaxSettings"
	// KindVoucherCode is internal: its ID is the hash of a voucher's code, by which the
	// voucher is found.
	KindVoucherCode Kind = "VoucherCode"
	// KindSignUpSettings is internal: the objects of the cluster and of resellers are
	// shown by the API as SignUpSettings.
	KindSignUpSettings Kind = "SignUpSettings"
	// KindACMESettings is internal: its objects are shown by the API as ACMESettings.
	KindACMESettings Kind = "ACMESettings"
	// KindSecuritySettings is internal: its only object is shown by the API as
	// SecuritySettings.
	KindSecuritySettings Kind = "SecuritySettings"
	// KindSeries is internal: the last numbers of a seller's documents.
	KindSeries Kind = "Series"
	// KindPriceBookVersion is internal: a former version of a price book.
	KindPriceBookVersion Kind = "PriceBookVersion"
	// KindExternalIdentity is internal: the link of a user to an account at an identity
	// provider.
	KindExternalIdentity Kind = "ExternalIdentity"
	// KindOVN and KindChassis are internal: the cluster's decisions about OVN's
	// databases, and the state of each node's part of the network.
	KindOVN     Kind = "OVN"
	KindChassis Kind = "Chassis"
)

// Scope is what a kind's objects belong to.
type Scope int

// Scopes.
const (
	OfCluster Scope = iota
	OfOrganization
	OfProject
)

// Verbs are the operations of a kind other than list.
type Verbs int

// Verbs.
const (
	CanGet Verbs = 1 << iota
	CanCreate
	CanUpdate
	CanDelete
	CanPut // create or update, by name

	CanAll = CanGet | CanCreate | CanUpdate | CanDelete
)

// Readers are the callers that may see an object of a kind, limited to their own
// projects and organizations where the object belongs to one.
type Readers int

// Readers.
const (
	ReadByMembers   Readers = iota // of its project or organization
	ReadByAll                      // cluster-wide and usable by all; operators change it
	ReadByOperators                // cluster-wide, for operators
	ReadByAdmins                   // admins of its organization
	ReadByPayers                   // admins, and members who manage the organization's billing
	ReadBySellers                  // the seller that created it for a customer
	ReadByOwner                    // the user that it belongs to
)

// KindInfo describes a kind for all parts of Basalt: server, client, command line,
// store and documentation read it.
type KindInfo struct {
	Kind Kind
	// Type is the type of its objects: a struct with Kind, Meta and Spec, and possibly
	// Assignment and Status. Nil for internal kinds, which the API neither shows nor
	// accepts.
	Type reflect.Type
	// Path is the path of its collection below /v1; empty for internal kinds.
	Path string
	// IDPrefix is the prefix of its IDs: "ins" for "ins-4f9c2a7be01d".
	IDPrefix string
	Scope    Scope
	// ScopeVaries means that an object may belong to a wider scope than Scope: an
	// operator's API key belongs to no project.
	ScopeVaries bool
	Verbs       Verbs
	Readers     Readers
	// KeyScope is its name in the scopes of an API key: "volumes" in "volumes:read".
	// Empty means that only keys without scopes have access.
	KeyScope string
	// KeyReads means that key scopes allow only reading it: creating users or
	// installing another release would allow a key to gain all other rights.
	KeyReads bool
	// Event is the first word of its webhook events; empty means that it has none.
	Event string
	// Quota is the quota of which each object uses one, and Most the limit for an
	// organization that sets none itself, not counting the objects of its customers:
	// enough for normal use, and low enough that no organization slows the cluster down
	// for others. Empty means no quota. Both are part of the state machine: a change
	// needs a feature level (appliance/controlplane/store/state/level.go).
	Quota string
	Most  int64
	// NoDryRun means that creating one cannot be tried with a dry run: a payment is
	// either recorded or not.
	NoDryRun bool
	// Finalizers are set on a new object.
	Finalizers []string
	// Keeps lists the container kinds (KindProject, KindOrganization) that cannot be
	// removed while they contain such an object.
	Keeps []Kind

	// fields are the fields that lists can be sorted and filtered by in addition to those
	// of all kinds: paths into its objects, and state, which is the result of StateOf.
	fields []string

	// references collects the references of an object. A new reference changes how the
	// state machine applies the log and fills its tables, so it needs a feature level.
	references func(o Object, r *references)
	// partsRefer means that references also depend on Assignment or Status.
	partsRefer bool
}

// kinds has one row for each kind.
var kinds = []KindInfo{
	{Kind: KindInstance, Type: reflect.TypeFor[Instance](), Path: "instances", IDPrefix: "ins", Scope: OfProject, Verbs: CanAll, KeyScope: "instances", Event: "instance",
		Finalizers: byAgent, Keeps: inProject, references: ofInstance,
		fields: []string{"state", "assignment.node", "assignment.gpu", "assignment.vcpus", "assignment.memoryBytes", "assignment.vgpuVramBytes",
			"spec.app", "spec.flavor", "spec.image", "spec.power", "status.startedAt"}},
	{Kind: KindVolume, Type: reflect.TypeFor[Volume](), Path: "volumes", IDPrefix: "vol", Scope: OfProject, Verbs: CanAll, KeyScope: "volumes", Event: "volume",
		Quota: "volumes", Most: 10_000, Finalizers: byAgent, Keeps: inProject, references: ofVolume, partsRefer: true,
		fields: []string{"state", "spec.encrypted", "spec.image", "spec.instance", "spec.pool", "spec.root", "spec.sizeBytes", "status.allocatedBytes"}},
	{Kind: KindImage, Type: reflect.TypeFor[Image](), Path: "images", IDPrefix: "img", Scope: OfProject, Verbs: CanAll, KeyScope: "images", Event: "image",
		Quota: "images", Most: 500, Finalizers: byAgent, Keeps: inProject,
		fields: []string{"state", "spec.format", "spec.public", "status.sizeBytes", "status.virtualBytes"}},
	{Kind: KindFlavor, Type: reflect.TypeFor[Flavor](), Path: "flavors", IDPrefix: "flv", Verbs: CanAll, Readers: ReadByAll, KeyScope: "instances",
		fields: []string{"spec.memoryBytes", "spec.rootBytes", "spec.vcpus"}},
	{Kind: KindApp, Type: reflect.TypeFor[App](), Path: "apps", IDPrefix: "app", Verbs: CanAll, Readers: ReadByAll, KeyScope: "instances",
		fields: []string{"spec.category", "spec.displayName", "spec.version"}},

	// Customers and billing. A seller has a user, an organization and a service for
	// each customer, and its customers' payments are its own.
	{Kind: KindProject, Type: reflect.TypeFor[Project](), Path: "projects", IDPrefix: "prj", Scope: OfOrganization, Verbs: CanAll, KeyScope: "projects", Event: "project",
		Quota: "projects", Most: 500, Keeps: inOrganization,
		fields: []string{"spec.displayName"}},
	{Kind: KindInvoice, Type: reflect.TypeFor[Invoice](), Path: "invoices", IDPrefix: "inv", Scope: OfOrganization, Verbs: CanGet, Readers: ReadByPayers, KeyScope: "billing", Event: "invoice",
		Keeps:  inOrganization,
		fields: []string{"spec.dueAt", "spec.from", "spec.issuedAt", "spec.number", "spec.totalMicros"}},
	{Kind: KindPayment, Type: reflect.TypeFor[Payment](), Path: "payments", IDPrefix: "pay", Scope: OfOrganization, Verbs: CanGet | CanCreate, Readers: ReadByPayers, KeyScope: "billing", Event: "payment",
		Quota: "payments", Most: 100_000, NoDryRun: true, Keeps: inOrganization,
		fields: []string{"spec.amountMicros", "spec.note", "spec.receivedAt", "spec.reference", "spec.type"}},
	{Kind: KindRefund, Type: reflect.TypeFor[Refund](), Path: "refunds", IDPrefix: "ref", Scope: OfOrganization, Verbs: CanGet | CanCreate, Readers: ReadByPayers, KeyScope: "billing", Event: "refund",
		NoDryRun: true, fields: []string{"spec.amountMicros", "spec.payment", "spec.reason", "spec.reference", "status.lastError", "status.state"}},
	{Kind: KindDispute, Type: reflect.TypeFor[Dispute](), Path: "disputes", IDPrefix: "dsp", Scope: OfOrganization, Verbs: CanGet, Readers: ReadByPayers, KeyScope: "billing", Event: "dispute",
		fields: []string{"spec.amountMicros", "spec.payment", "spec.providerDispute", "spec.reason", "status.closedAt", "status.feeMicros", "status.respondBy", "status.state", "status.withdrawnMicros"}},
	{Kind: KindVATCheck, Type: reflect.TypeFor[VATCheck](), Path: "vat-checks", IDPrefix: "vat", Scope: OfOrganization, Verbs: CanGet, Readers: ReadByPayers, KeyScope: "billing",
		fields: []string{"spec.number", "status.checkedAt", "status.state"}},
	{Kind: KindCheckout, Type: reflect.TypeFor[Checkout](), Path: "checkouts", IDPrefix: "chk", Scope: OfOrganization, Verbs: CanGet | CanCreate, Readers: ReadByPayers, KeyScope: "billing",
		NoDryRun: true, fields: []string{"spec.invoice"}},
	{Kind: KindCard, Type: reflect.TypeFor[Card](), Path: "cards", IDPrefix: "card", Scope: OfOrganization, Verbs: CanGet | CanCreate | CanDelete, Readers: ReadByPayers, KeyScope: "billing",
		NoDryRun: true},
	{Kind: KindCreditNote, Type: reflect.TypeFor[CreditNote](), Path: "credit-notes", IDPrefix: "cn", Scope: OfOrganization, Verbs: CanGet | CanCreate, Readers: ReadByPayers, KeyScope: "billing", Event: "credit_note",
		Quota: "creditNotes", Most: 100_000,
		fields: []string{"spec.invoice", "spec.issuedAt", "spec.number", "spec.reason", "spec.totalMicros"}},
	{Kind: KindBudget, Type: reflect.TypeFor[Budget](), Path: "budgets", IDPrefix: "bud", Scope: OfOrganization, Verbs: CanAll, Readers: ReadByPayers, KeyScope: "billing",
		Quota: "budgets", Most: 1000, Keeps: inOrganization, references: ofBudget,
		fields: []string{"spec.amountMicros", "spec.cap", "spec.project", "status.spentMicros"}},
	{Kind: KindAPIKey, Type: reflect.TypeFor[APIKey](), Path: "api-keys", IDPrefix: "key", Scope: OfProject, ScopeVaries: true, Verbs: CanAll, Readers: ReadByAdmins, KeyScope: "api-keys", Event: "api_key",
		Quota: "apiKeys", Most: 1000, Keeps: inEither,
		fields: []string{"spec.expiresAt", "spec.role", "status.lastUsedAt"}},
	{Kind: KindOrganization, Type: reflect.TypeFor[Organization](), Path: "organizations", IDPrefix: "org", Verbs: CanAll, KeyScope: "organizations", Event: "organization",
		Quota: "organizations", Most: 50_000, Keeps: inOrganization, references: ofOrganization,
		fields: []string{"spec.displayName", "spec.parent", "spec.priceBook"}},
	{Kind: KindUser, Type: reflect.TypeFor[User](), Path: "users", IDPrefix: "usr", Scope: OfOrganization, ScopeVaries: true, Verbs: CanAll, Readers: ReadByAdmins, KeyScope: "users", KeyReads: true, Event: "user",
		Quota: "users", Most: 50_000, Keeps: inOrganization,
		fields: []string{"spec.disabled", "spec.displayName", "status.lastLoginAt", "status.totp"}},
	{Kind: KindGroup, Type: reflect.TypeFor[Group](), Path: "groups", IDPrefix: "grp", Scope: OfOrganization, Verbs: CanAll, Readers: ReadByAdmins, KeyScope: "users", KeyReads: true, Event: "group",
		Quota: "groups", Most: 500, Keeps: inOrganization, references: ofGroup,
		fields: []string{"spec.displayName", "spec.source"}},
	{Kind: KindWebhook, Type: reflect.TypeFor[Webhook](), Path: "webhooks", IDPrefix: "hook", Scope: OfOrganization, ScopeVaries: true, Verbs: CanAll, Readers: ReadByAdmins, KeyScope: "webhooks",
		Quota: "webhooks", Most: MaxWebhooks, Keeps: inOrganization,
		fields: []string{"spec.paused", "spec.url", "status.deliveredAt"}},
	{Kind: KindSupportGrant, Type: reflect.TypeFor[SupportGrant](), Path: "support-grants", IDPrefix: "sgr", Scope: OfOrganization, Verbs: CanGet | CanCreate | CanDelete, Readers: ReadByAdmins, KeyScope: "organizations", KeyReads: true,
		Quota: "supportGrants", Most: 100,
		fields: []string{"spec.expiresAt", "spec.reason"}},
	{Kind: KindPortalDomain, Type: reflect.TypeFor[PortalDomain](), Path: "portal-domains", IDPrefix: "pdom", Scope: OfOrganization, Verbs: CanAll, Readers: ReadByAdmins, KeyScope: "organizations",
		Quota: "portalDomains", Most: 16,
		fields: []string{"spec.approved", "spec.expiresAt"}},
	{Kind: KindService, Type: reflect.TypeFor[Service](), Path: "services", IDPrefix: "svc", Scope: OfOrganization, ScopeVaries: true, Verbs: CanGet | CanPut | CanDelete, Readers: ReadBySellers, KeyScope: "services",
		Quota: "services", Most: 50_000, Keeps: inOrganization, references: ofService,
		fields: []string{"spec.displayName", "spec.email", "spec.organization", "spec.priceBook", "spec.terminatedAt", "spec.type"}},
	{Kind: KindPriceBook, Type: reflect.TypeFor[PriceBook](), Path: "price-books", IDPrefix: "pb", Scope: OfOrganization, ScopeVaries: true, Verbs: CanAll, Readers: ReadByAll, KeyScope: "billing",
		Quota: "priceBooks", Most: 64, Keeps: inOrganization,
		fields: []string{"spec.currency", "spec.effectiveFrom"}},
	{Kind: KindVoucher, Type: reflect.TypeFor[Voucher](), Path: "vouchers", IDPrefix: "vch", Verbs: CanGet | CanCreate | CanDelete, Readers: ReadByOperators, KeyScope: "billing",
		fields: []string{"spec.amountMicros", "spec.expiresAt", "spec.note", "status.redeemed"}},
	{Kind: KindSSHKey, Type: reflect.TypeFor[SSHKey](), Path: "ssh-keys", IDPrefix: "sshkey", Verbs: CanGet | CanCreate | CanDelete, Readers: ReadByOwner,
		Quota: "sshKeys", Most: 100_000, references: ofUser},
	{Kind: KindUsageRecord, Type: reflect.TypeFor[UsageRecord](), Path: "usage-records", IDPrefix: "use", Scope: OfProject},
	{Kind: KindIdentityProvider, Type: reflect.TypeFor[IdentityProvider](), Path: "identity-providers", IDPrefix: "idp", Scope: OfOrganization, ScopeVaries: true, Verbs: CanAll, Readers: ReadByAdmins,
		Quota: "identityProviders", Most: 8, Keeps: inOrganization, references: ofIdentityProvider,
		fields: []string{"spec.create", "spec.issuer", "spec.organization"}},

	// Networking.
	{Kind: KindLoadBalancer, Type: reflect.TypeFor[LoadBalancer](), Path: "load-balancers", IDPrefix: "lb", Scope: OfProject, Verbs: CanAll, KeyScope: "networks", Event: "load_balancer",
		Quota: "loadBalancers", Most: 200, Keeps: inProject, references: ofLoadBalancer,
		fields: []string{"state", "spec.floatingIP", "spec.network", "spec.port", "spec.protocol"}},
	{Kind: KindFloatingIP, Type: reflect.TypeFor[FloatingIP](), Path: "floating-ips", IDPrefix: "fip", Scope: OfProject, Verbs: CanAll, KeyScope: "networks", Event: "floating_ip",
		Finalizers: byMeter, Keeps: inProject, references: ofFloatingIP,
		fields: []string{"state", "assignment.address", "spec.externalNetwork", "spec.instance"}},

	// Copies of volumes.
	{Kind: KindSnapshot, Type: reflect.TypeFor[Snapshot](), Path: "snapshots", IDPrefix: "snap", Scope: OfProject, Verbs: CanAll, KeyScope: "volumes", Event: "snapshot",
		Quota: "snapshots", Most: 10_000, Finalizers: byBoth, Keeps: inProject, references: ofSnapshot,
		fields: []string{"state", "spec.volume", "status.createdAt", "status.sizeBytes"}},
	{Kind: KindBackup, Type: reflect.TypeFor[Backup](), Path: "backups", IDPrefix: "bak", Scope: OfProject, Verbs: CanAll, KeyScope: "volumes", Event: "backup",
		Quota: "backups", Most: 20_000, Finalizers: byAgent, Keeps: inProject, references: ofBackup,
		fields: []string{"state", "spec.sizeBytes", "spec.target", "spec.volume", "status.addedBytes", "status.endedAt", "status.startedAt"}},
	{Kind: KindBackupTarget, Type: reflect.TypeFor[BackupTarget](), Path: "backup-targets", IDPrefix: "bt", Verbs: CanAll, Readers: ReadByAll, KeyScope: "storage"},

	{Kind: KindNetwork, Type: reflect.TypeFor[Network](), Path: "networks", IDPrefix: "net", Scope: OfProject, Verbs: CanAll, KeyScope: "networks", Event: "network",
		Quota: "networks", Most: 200, Keeps: inProject,
		fields: []string{"state", "spec.cidr4", "spec.cidr6", "spec.isolated"}},
	{Kind: KindSecurityGroup, Type: reflect.TypeFor[SecurityGroup](), Path: "security-groups", IDPrefix: "sg", Scope: OfProject, Verbs: CanAll, KeyScope: "networks", Event: "security_group",
		Quota: "securityGroups", Most: 1000, Keeps: inProject, references: ofSecurityGroup},
	{Kind: KindRouter, Type: reflect.TypeFor[Router](), Path: "routers", IDPrefix: "rtr", Scope: OfProject, Verbs: CanGet, KeyScope: "networks",
		fields: []string{"state", "spec.externalNetwork", "status.node"}},
	{Kind: KindExternalNetwork, Type: reflect.TypeFor[ExternalNetwork](), Path: "external-networks", IDPrefix: "ext", Verbs: CanAll, Readers: ReadByAll, KeyScope: "networks"},

	// The cluster.
	{Kind: KindNode, Type: reflect.TypeFor[Node](), Path: "nodes", IDPrefix: "node", Verbs: CanGet | CanUpdate | CanDelete, Readers: ReadByOperators, KeyScope: "nodes",
		fields: []string{"assignment.voter", "spec.drain", "spec.unschedulable", "status.memoryBytes", "status.seenAt", "status.storageFreeBytes", "status.vcpus", "status.version"}},
	{Kind: KindGPU, Type: reflect.TypeFor[GPU](), Path: "gpus", IDPrefix: "gpu", Verbs: CanGet | CanUpdate, Readers: ReadByOperators, KeyScope: "gpu-pools", references: ofGPU},
	{Kind: KindGPUPool, Type: reflect.TypeFor[GPUPool](), Path: "gpu-pools", IDPrefix: "pool", Verbs: CanAll, Readers: ReadByAll, KeyScope: "gpu-pools"},
	{Kind: KindDisk, Type: reflect.TypeFor[Disk](), Path: "disks", IDPrefix: "disk", Verbs: CanGet | CanUpdate, Readers: ReadByOperators, KeyScope: "storage", references: ofDisk,
		fields: []string{"spec.use", "status.model", "status.node", "status.sizeBytes", "status.state"}},
	{Kind: KindCephCluster, Type: reflect.TypeFor[CephCluster](), Path: "ceph-clusters", IDPrefix: "ceph", Verbs: CanAll, Readers: ReadByOperators, KeyScope: "storage"},
	{Kind: KindMigration, Type: reflect.TypeFor[Migration](), Path: "migrations", IDPrefix: "mig", Verbs: CanAll, Readers: ReadByOperators, KeyScope: "nodes", references: ofMigration,
		fields: []string{"state", "spec.instance", "spec.target", "spec.volume", "status.downtimeMillis", "status.endedAt", "status.startedAt"}},
	{Kind: KindJoinToken, Type: reflect.TypeFor[JoinToken](), Path: "join-tokens", IDPrefix: "join", Verbs: CanGet | CanCreate | CanDelete, Readers: ReadByOperators},
	{Kind: KindUpgrade, Type: reflect.TypeFor[Upgrade](), Path: "upgrades", IDPrefix: "upg", Verbs: CanAll, Readers: ReadByOperators, KeyScope: "nodes", KeyReads: true},
	{Kind: KindMailSuppression, Type: reflect.TypeFor[MailSuppression](), Path: "mail-suppressions", IDPrefix: "msup", Scope: OfOrganization, ScopeVaries: true, Verbs: CanGet | CanDelete, Readers: ReadByAdmins,
		fields: []string{"spec.address", "status.lastError", "status.returnedAt", "status.suppressedAt"}},
	{Kind: KindMailMessage, Type: reflect.TypeFor[MailMessage](), Path: "mail-messages", IDPrefix: "mail", Verbs: CanGet | CanDelete, Readers: ReadByOperators,
		fields: []string{"spec.to", "spec.type", "status.doneAt", "status.lastError", "status.state"}},

	// Internal.
	{Kind: KindSession, IDPrefix: "ses", references: ofUser},
	{Kind: KindExternalIdentity, IDPrefix: "eid", references: ofUser},
	{Kind: KindLoginLink, IDPrefix: "link"},
	{Kind: KindBranding, IDPrefix: "brand"},
	{Kind: KindMailSettings, IDPrefix: "mailsettings"},
	{Kind: KindPaymentSettings, IDPrefix: "paysettings"},
	{Kind: KindTopUp, IDPrefix: "topup"},
	{Kind: KindAutoPay, IDPrefix: "autopay"},
	{Kind: KindTaxSettings, IDPrefix: "taxes"},
	{Kind: KindVoucherCode, IDPrefix: "vcode"},
	{Kind: KindSignUpSettings, IDPrefix: "signupsettings"},
	{Kind: KindACMESettings, IDPrefix: "acme"},
	{Kind: KindSecuritySettings, IDPrefix: "secsettings"},
	{Kind: KindSeries, IDPrefix: "series"},
	{Kind: KindPriceBookVersion, IDPrefix: "pbv"},
	{Kind: KindAuditCheck, IDPrefix: "auditcheck"},
	{Kind: KindClusterCA, IDPrefix: "ca"},
	{Kind: KindVolumeKeys, IDPrefix: "volumekeys"},
	{Kind: KindAppAuthority, IDPrefix: "appauthority"},
	{Kind: KindSSHAuthority, IDPrefix: "sshauthority"},
	{Kind: KindSSHGuest, IDPrefix: "sshguest"},
	{Kind: KindCephKeys, IDPrefix: "cephkeys"},
	{Kind: KindOVN, IDPrefix: "ovn"},
	{Kind: KindChassis, IDPrefix: "chassis"},
}

var (
	byAgent = []string{FinalizerAgent}
	byMeter = []string{FinalizerMeter}
	byBoth  = []string{FinalizerAgent, FinalizerMeter}

	inProject      = []Kind{KindProject}
	inOrganization = []Kind{KindOrganization}
	inEither       = []Kind{KindProject, KindOrganization}
)

var byKind, byType, byPrefix = func() (map[Kind]KindInfo, map[reflect.Type]Kind, map[string]Kind) {
	ofKind, ofType, ofPrefix := map[Kind]KindInfo{}, map[reflect.Type]Kind{}, map[string]Kind{}
	for _, k := range kinds {
		ofKind[k.Kind], ofPrefix[k.IDPrefix] = k, k.Kind
		if k.Type != nil {
			ofType[k.Type] = k.Kind
		}
	}
	return ofKind, ofType, ofPrefix
}()

// Kinds returns the kinds of the API, in no particular order.
func Kinds() []KindInfo {
	return slices.DeleteFunc(slices.Clone(kinds), func(k KindInfo) bool { return k.Path == "" })
}

// Info returns the row of a kind, or a zero KindInfo if the kind does not exist.
func (k Kind) Info() KindInfo { return byKind[k] }

// Public reports whether the API shows objects of the kind.
func (k Kind) Public() bool { return byKind[k].Path != "" }

// KindOf returns the kind whose objects have type T. It panics if there is none, which
// is a programming error.
func KindOf[T any]() Kind {
	k, ok := byType[reflect.TypeFor[T]()]
	if !ok {
		panic("api: no kind has type " + reflect.TypeFor[T]().String())
	}
	return k
}

// MetaOf returns a pointer to the meta of an object of a kind's type.
func MetaOf[T any](o *T) *Meta {
	KindOf[T]()
	return reflect.ValueOf(o).Elem().FieldByName("Meta").Addr().Interface().(*Meta)
}

// KindOfID returns the kind of the object with an ID, by the ID's prefix.
func KindOfID(id string) (Kind, bool) {
	prefix, _, ok := strings.Cut(id, "-")
	kind, known := byPrefix[prefix]
	return kind, ok && known
}

// ReferringKinds returns the kinds whose objects have references, sorted.
func ReferringKinds() []Kind {
	var out []Kind
	for _, k := range kinds {
		if k.references != nil {
			out = append(out, k.Kind)
		}
	}
	slices.Sort(out)
	return out
}

// Members returns the kinds whose objects prevent the removal of the project or
// organization that contains them; nil for kinds that are not containers.
func Members(container Kind) []Kind {
	var out []Kind
	for _, k := range kinds {
		if slices.Contains(k.Keeps, container) {
			out = append(out, k.Kind)
		}
	}
	return out
}

// DefaultQuotas returns the limits of an organization that sets none itself. Quotas
// without a default limit are left out.
func DefaultQuotas() Amounts { return maps.Clone(defaults) }

var defaults = func() Amounts {
	a := Amounts{QuotaInstances: 5000, QuotaFloatingIPs: 500}
	for _, k := range kinds {
		if k.Quota != "" {
			a[k.Quota] = k.Most
		}
	}
	return a
}()
