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
	KindBudget           Kind = "Budget"
	KindPriceBook        Kind = "PriceBook"
	KindCheckout         Kind = "Checkout"
	KindVoucher          Kind = "Voucher"
	KindMigration        Kind = "Migration"
	KindJoinToken        Kind = "JoinToken"
	KindWebhook          Kind = "Webhook"

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

	// KindMailMessage is a message of the outbox.
	KindMailMessage Kind = "MailMessage"

	KindService Kind = "Service"
	KindSSHKey  Kind = "SSHKey"

	// KindClusterCA is internal: what the cluster signs certificates with. The
	// API neither shows nor takes it.
	KindClusterCA Kind = "ClusterCA"
	// KindVolumeKeys is internal: what wraps the keys of encrypted volumes.
	KindVolumeKeys Kind = "VolumeKeys"
	// KindAppAuthority is internal: the key that signs passes of the app gateway.
	KindAppAuthority Kind = "AppAuthority"
	// KindSSHAuthority is internal: the SSH gateway's host key, and the CA whose
	// certificates it signs in to guests with.
	KindSSHAuthority Kind = "SSHAuthority"
	// KindSSHGuest is internal: the host key that an instance is known by, and who was
	// in it last.
	KindSSHGuest Kind = "SSHGuest"
	// KindCephKeys is internal: the keys of Ceph's daemons and clients.
	KindCephKeys Kind = "CephKeys"
	// KindSession is internal: the API shows a user his own.
	KindSession Kind = "Session"
	// KindAuditCheck is internal: what the leader found when it verified the audit
	// trail.
	KindAuditCheck Kind = "AuditCheck"
	// KindLoginLink is internal: a token that logs somebody in, once.
	KindLoginLink Kind = "LoginLink"
	// KindBranding is internal: there is one object of it, which the API shows as
	// Branding.
	KindBranding Kind = "Branding"
	// KindMailSettings is internal: there is one object of it, which the API shows as
	// MailSettings.
	KindMailSettings Kind = "MailSettings"
	// KindPaymentSettings is internal: there is one object of it, which the API shows as
	// PaymentSettings.
	KindPaymentSettings Kind = "PaymentSettings"
	// KindVoucherCode is internal: by the hash of its code a voucher is found, which is its id.
	KindVoucherCode Kind = "VoucherCode"
	// KindSignUpSettings is internal: there is one object of it, which the API shows as
	// SignUpSettings.
	KindSignUpSettings Kind = "SignUpSettings"
	// KindSeries is internal: how far the numbers of a seller's documents are.
	KindSeries Kind = "Series"
	// KindPriceBookVersion is internal: a price book as it was.
	KindPriceBookVersion Kind = "PriceBookVersion"
	// KindExternalIdentity is internal: a user as an identity provider knows it.
	KindExternalIdentity Kind = "ExternalIdentity"
	// KindOVN and KindChassis are internal: what was decided about OVN's
	// databases, and how each node's part of the network is.
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

// Verbs are the operations of a kind besides its list.
type Verbs int

// Verbs.
const (
	CanGet Verbs = 1 << iota
	CanCreate
	CanUpdate
	CanDelete
	CanPut // create and update in one, by name

	CanAll = CanGet | CanCreate | CanUpdate | CanDelete
)

// Readers are the callers for whom an object of a kind exists, within what belongs
// to them where it belongs to somebody.
type Readers int

// Readers.
const (
	ReadByMembers   Readers = iota // of its project or organization
	ReadByAll                      // it is the cluster's and everybody may use it; operators change it
	ReadByOperators                // it is the cluster's
	ReadByAdmins                   // of its organization
	ReadByPayers                   // admins, and who looks after the organization's bills
	ReadBySellers                  // who has made it for a customer
	ReadByOwner                    // the user whose it is
)

// KindInfo is what all parts of Basalt have to know of a kind: server, client,
// command line, store and documentation read it here.
type KindInfo struct {
	Kind Kind
	// Type of its objects: a struct with Kind, Meta and Spec, and perhaps Assignment
	// and Status. Nil: it is internal, the API neither shows nor takes it.
	Type reflect.Type
	// Path of its collection below /v1. Empty: internal.
	Path string
	// IDPrefix is what its ids begin with: "ins" of "ins-4f9c2a7be01d".
	IDPrefix string
	Scope    Scope
	// ScopeVaries means that an object may belong to less than Scope: an operator's
	// API key belongs to no project.
	ScopeVaries bool
	Verbs       Verbs
	Readers     Readers
	// KeyScope is what the scopes of an API key call it: "volumes" of "volumes:read".
	// Empty: only keys without scopes may.
	KeyScope string
	// KeyReads means that no scope of a key allows more than to read it: who makes
	// users, or installs another release, could give himself all the rest.
	KeyReads bool
	// Event is the first word of the events that webhooks tell of it; empty: none.
	Event string
	// Quota is that of which every object takes one by being there, and Most how many
	// an organization may have that does not say so itself, its customers' ones not
	// counted: enough for everybody, and few enough that nobody's make the cluster
	// slow for others. Empty: none. Both belong to the state machine: a change needs
	// a feature level (appliance/controlplane/store/level.go).
	Quota string
	Most  int64
	// NoDryRun means that making one is not tried: a payment is noted, or it is not.
	NoDryRun bool
	// Finalizers of a new object.
	Finalizers []string
	// Keeps are the kinds of container that stay while such an object is in them:
	// KindProject, KindOrganization.
	Keeps []Kind

	// references are those that an object has by what it says. A new one changes what
	// the state machine makes of the log and of its tables, and needs a feature level.
	references func(o Object, r *references)
	// partsRefer means that they depend on Assignment or Status too.
	partsRefer bool
}

// kinds are all that there are.
var kinds = []KindInfo{
	{Kind: KindInstance, Type: reflect.TypeFor[Instance](), Path: "instances", IDPrefix: "ins", Scope: OfProject, Verbs: CanAll, KeyScope: "instances", Event: "instance",
		Finalizers: byAgent, Keeps: inProject, references: ofInstance},
	{Kind: KindVolume, Type: reflect.TypeFor[Volume](), Path: "volumes", IDPrefix: "vol", Scope: OfProject, Verbs: CanAll, KeyScope: "volumes", Event: "volume",
		Quota: "volumes", Most: 10_000, Finalizers: byAgent, Keeps: inProject, references: ofVolume, partsRefer: true},
	{Kind: KindImage, Type: reflect.TypeFor[Image](), Path: "images", IDPrefix: "img", Scope: OfProject, Verbs: CanAll, KeyScope: "images", Event: "image",
		Quota: "images", Most: 500, Finalizers: byAgent, Keeps: inProject},
	{Kind: KindFlavor, Type: reflect.TypeFor[Flavor](), Path: "flavors", IDPrefix: "flv", Verbs: CanAll, Readers: ReadByAll, KeyScope: "instances"},
	{Kind: KindApp, Type: reflect.TypeFor[App](), Path: "apps", IDPrefix: "app", Verbs: CanAll, Readers: ReadByAll, KeyScope: "instances"},

	// Who uses it, and pays. A seller has a user, an organization and a service for
	// each customer, and its customers' payments are its own.
	{Kind: KindProject, Type: reflect.TypeFor[Project](), Path: "projects", IDPrefix: "prj", Scope: OfOrganization, Verbs: CanAll, KeyScope: "projects", Event: "project",
		Quota: "projects", Most: 500, Keeps: inOrganization},
	{Kind: KindInvoice, Type: reflect.TypeFor[Invoice](), Path: "invoices", IDPrefix: "inv", Scope: OfOrganization, Verbs: CanGet, Readers: ReadByPayers, KeyScope: "billing", Event: "invoice",
		Keeps: inOrganization},
	{Kind: KindPayment, Type: reflect.TypeFor[Payment](), Path: "payments", IDPrefix: "pay", Scope: OfOrganization, Verbs: CanGet | CanCreate, Readers: ReadByPayers, KeyScope: "billing", Event: "payment",
		Quota: "payments", Most: 100_000, NoDryRun: true, Keeps: inOrganization},
	{Kind: KindCheckout, Type: reflect.TypeFor[Checkout](), Path: "checkouts", IDPrefix: "chk", Scope: OfOrganization, Verbs: CanGet | CanCreate, Readers: ReadByPayers, KeyScope: "billing",
		NoDryRun: true},
	{Kind: KindCreditNote, Type: reflect.TypeFor[CreditNote](), Path: "credit-notes", IDPrefix: "cn", Scope: OfOrganization, Verbs: CanGet | CanCreate, Readers: ReadByPayers, KeyScope: "billing", Event: "credit_note",
		Quota: "creditNotes", Most: 100_000},
	{Kind: KindBudget, Type: reflect.TypeFor[Budget](), Path: "budgets", IDPrefix: "bud", Scope: OfOrganization, Verbs: CanAll, Readers: ReadByPayers, KeyScope: "billing",
		Quota: "budgets", Most: 1000, Keeps: inOrganization, references: ofBudget},
	{Kind: KindAPIKey, Type: reflect.TypeFor[APIKey](), Path: "api-keys", IDPrefix: "key", Scope: OfProject, ScopeVaries: true, Verbs: CanAll, Readers: ReadByAdmins, KeyScope: "api-keys", Event: "api_key",
		Quota: "apiKeys", Most: 1000, Keeps: inEither},
	{Kind: KindOrganization, Type: reflect.TypeFor[Organization](), Path: "organizations", IDPrefix: "org", Verbs: CanAll, KeyScope: "organizations", Event: "organization",
		Quota: "organizations", Most: 50_000, Keeps: inOrganization, references: ofOrganization},
	{Kind: KindUser, Type: reflect.TypeFor[User](), Path: "users", IDPrefix: "usr", Scope: OfOrganization, ScopeVaries: true, Verbs: CanAll, Readers: ReadByAdmins, KeyScope: "users", KeyReads: true, Event: "user",
		Quota: "users", Most: 50_000, Keeps: inOrganization},
	{Kind: KindWebhook, Type: reflect.TypeFor[Webhook](), Path: "webhooks", IDPrefix: "hook", Scope: OfOrganization, ScopeVaries: true, Verbs: CanAll, Readers: ReadByAdmins, KeyScope: "webhooks",
		Quota: "webhooks", Most: MaxWebhooks, Keeps: inOrganization},
	{Kind: KindService, Type: reflect.TypeFor[Service](), Path: "services", IDPrefix: "svc", Scope: OfOrganization, ScopeVaries: true, Verbs: CanGet | CanPut | CanDelete, Readers: ReadBySellers, KeyScope: "services",
		Quota: "services", Most: 50_000, Keeps: inOrganization, references: ofService},
	{Kind: KindPriceBook, Type: reflect.TypeFor[PriceBook](), Path: "price-books", IDPrefix: "pb", Scope: OfOrganization, ScopeVaries: true, Verbs: CanAll, Readers: ReadByAll, KeyScope: "billing",
		Quota: "priceBooks", Most: 64, Keeps: inOrganization},
	{Kind: KindVoucher, Type: reflect.TypeFor[Voucher](), Path: "vouchers", IDPrefix: "vch", Verbs: CanGet | CanCreate | CanDelete, Readers: ReadByOperators, KeyScope: "billing"},
	{Kind: KindSSHKey, Type: reflect.TypeFor[SSHKey](), Path: "ssh-keys", IDPrefix: "sshkey", Verbs: CanGet | CanCreate | CanDelete, Readers: ReadByOwner,
		Quota: "sshKeys", Most: 100_000, references: ofUser},
	{Kind: KindUsageRecord, Type: reflect.TypeFor[UsageRecord](), Path: "usage-records", IDPrefix: "use", Scope: OfProject},
	{Kind: KindIdentityProvider, Type: reflect.TypeFor[IdentityProvider](), Path: "identity-providers", IDPrefix: "idp", Verbs: CanAll, Readers: ReadByOperators, references: ofIdentityProvider},

	// Its network.
	{Kind: KindLoadBalancer, Type: reflect.TypeFor[LoadBalancer](), Path: "load-balancers", IDPrefix: "lb", Scope: OfProject, Verbs: CanAll, KeyScope: "networks", Event: "load_balancer",
		Quota: "loadBalancers", Most: 200, Keeps: inProject, references: ofLoadBalancer},
	{Kind: KindFloatingIP, Type: reflect.TypeFor[FloatingIP](), Path: "floating-ips", IDPrefix: "fip", Scope: OfProject, Verbs: CanAll, KeyScope: "networks", Event: "floating_ip",
		Finalizers: byMeter, Keeps: inProject, references: ofFloatingIP},

	// Copies of its volumes.
	{Kind: KindSnapshot, Type: reflect.TypeFor[Snapshot](), Path: "snapshots", IDPrefix: "snap", Scope: OfProject, Verbs: CanAll, KeyScope: "volumes", Event: "snapshot",
		Quota: "snapshots", Most: 10_000, Finalizers: byBoth, Keeps: inProject, references: ofSnapshot},
	{Kind: KindBackup, Type: reflect.TypeFor[Backup](), Path: "backups", IDPrefix: "bak", Scope: OfProject, Verbs: CanAll, KeyScope: "volumes", Event: "backup",
		Quota: "backups", Most: 20_000, Finalizers: byAgent, Keeps: inProject, references: ofBackup},
	{Kind: KindBackupTarget, Type: reflect.TypeFor[BackupTarget](), Path: "backup-targets", IDPrefix: "bt", Verbs: CanAll, Readers: ReadByAll, KeyScope: "storage"},

	{Kind: KindNetwork, Type: reflect.TypeFor[Network](), Path: "networks", IDPrefix: "net", Scope: OfProject, Verbs: CanAll, KeyScope: "networks", Event: "network",
		Quota: "networks", Most: 200, Keeps: inProject},
	{Kind: KindSecurityGroup, Type: reflect.TypeFor[SecurityGroup](), Path: "security-groups", IDPrefix: "sg", Scope: OfProject, Verbs: CanAll, KeyScope: "networks", Event: "security_group",
		Quota: "securityGroups", Most: 1000, Keeps: inProject, references: ofSecurityGroup},
	{Kind: KindRouter, Type: reflect.TypeFor[Router](), Path: "routers", IDPrefix: "rtr", Scope: OfProject, Verbs: CanGet, KeyScope: "networks"},
	{Kind: KindExternalNetwork, Type: reflect.TypeFor[ExternalNetwork](), Path: "external-networks", IDPrefix: "ext", Verbs: CanAll, Readers: ReadByAll, KeyScope: "networks"},

	// The cluster.
	{Kind: KindNode, Type: reflect.TypeFor[Node](), Path: "nodes", IDPrefix: "node", Verbs: CanGet | CanUpdate | CanDelete, Readers: ReadByOperators, KeyScope: "nodes"},
	{Kind: KindGPU, Type: reflect.TypeFor[GPU](), Path: "gpus", IDPrefix: "gpu", Verbs: CanGet | CanUpdate, Readers: ReadByOperators, KeyScope: "gpu-pools", references: ofGPU},
	{Kind: KindGPUPool, Type: reflect.TypeFor[GPUPool](), Path: "gpu-pools", IDPrefix: "pool", Verbs: CanAll, Readers: ReadByAll, KeyScope: "gpu-pools"},
	{Kind: KindDisk, Type: reflect.TypeFor[Disk](), Path: "disks", IDPrefix: "disk", Verbs: CanGet | CanUpdate, Readers: ReadByOperators, KeyScope: "storage", references: ofDisk},
	{Kind: KindCephCluster, Type: reflect.TypeFor[CephCluster](), Path: "ceph-clusters", IDPrefix: "ceph", Verbs: CanAll, Readers: ReadByOperators, KeyScope: "storage"},
	{Kind: KindMigration, Type: reflect.TypeFor[Migration](), Path: "migrations", IDPrefix: "mig", Verbs: CanAll, Readers: ReadByOperators, KeyScope: "nodes", references: ofMigration},
	{Kind: KindJoinToken, Type: reflect.TypeFor[JoinToken](), Path: "join-tokens", IDPrefix: "join", Verbs: CanGet | CanCreate | CanDelete, Readers: ReadByOperators},
	{Kind: KindUpgrade, Type: reflect.TypeFor[Upgrade](), Path: "upgrades", IDPrefix: "upg", Verbs: CanAll, Readers: ReadByOperators, KeyScope: "nodes", KeyReads: true},
	{Kind: KindMailMessage, Type: reflect.TypeFor[MailMessage](), Path: "mail-messages", IDPrefix: "mail", Verbs: CanGet | CanDelete, Readers: ReadByOperators},

	// Internal.
	{Kind: KindSession, IDPrefix: "ses", references: ofUser},
	{Kind: KindExternalIdentity, IDPrefix: "eid", references: ofUser},
	{Kind: KindLoginLink, IDPrefix: "link"},
	{Kind: KindBranding, IDPrefix: "brand"},
	{Kind: KindMailSettings, IDPrefix: "mailsettings"},
	{Kind: KindPaymentSettings, IDPrefix: "paysettings"},
	{Kind: KindVoucherCode, IDPrefix: "vcode"},
	{Kind: KindSignUpSettings, IDPrefix: "signupsettings"},
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

// Kinds returns those of the API, in no order that means anything.
func Kinds() []KindInfo {
	return slices.DeleteFunc(slices.Clone(kinds), func(k KindInfo) bool { return k.Path == "" })
}

// Info returns what is known of a kind; of one that there is not, nothing.
func (k Kind) Info() KindInfo { return byKind[k] }

// Public reports whether the API has objects of the kind.
func (k Kind) Public() bool { return byKind[k].Path != "" }

// KindOf returns the kind whose objects have type T. It panics where none has, which
// is a mistake in the program.
func KindOf[T any]() Kind {
	k, ok := byType[reflect.TypeFor[T]()]
	if !ok {
		panic("api: no kind has type " + reflect.TypeFor[T]().String())
	}
	return k
}

// MetaOf returns the meta of an object of a kind's type, to read or to change it.
func MetaOf[T any](o *T) *Meta {
	KindOf[T]()
	return reflect.ValueOf(o).Elem().FieldByName("Meta").Addr().Interface().(*Meta)
}

// KindOfID returns the kind of object that has such an id.
func KindOfID(id string) (Kind, bool) {
	prefix, _, ok := strings.Cut(id, "-")
	kind, known := byPrefix[prefix]
	return kind, ok && known
}

// ReferringKinds are those whose objects refer to others by what they say, sorted.
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

// Members are the kinds whose objects keep a project or organization that they
// are in; none for other kinds.
func Members(container Kind) []Kind {
	var out []Kind
	for _, k := range kinds {
		if slices.Contains(k.Keeps, container) {
			out = append(out, k.Kind)
		}
	}
	return out
}

// DefaultQuotas returns how much an organization may have of each quota of which it
// says nothing itself, those without a limit left out.
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
