package state

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Level is the feature level that this program supports: the version of everything that
// stores of several nodes exchange (log entries, snapshots, backups), and of how the
// state machine applies it.
//
// A cluster has a level, too. It is stored in the tables, and a log entry raises it
// when every member supports the next one: all nodes change how they apply the log at
// the same entry, whatever release each of them runs. What a level introduces is done
// only from that level on (View.Level), and no command that it introduces is written
// before. A program that finds a level above its own stops.
//
// 2: objects have claims. 3: use is rolled up by the hour, objects use quotas, and
// there is an audit log. 4: there are events for webhooks. 5: usage records are rows,
// old ones are removed, and nodes compare their position in the log when they read. 6:
// instances have histories. 7: clusters have a level, and an ID. 8: events of the audit
// log are sealed with a key of the cluster, which comes with the level; those for
// webhooks are limited fairly between organizations; objects count against quotas of
// their kind, and organizations have default limits; an object that others refer to
// cannot be deleted, and a reference to an object that does not exist is refused; an
// organization that has used something since the deletion was decided is not deleted.
// 9: usage records and sums of use have the attributes by which prices differ. 10:
// nodes store sealed states of machines beside root volumes; flavors and instances have
// a CPU policy, and assignments have dedicated CPUs. 11: organizations have groups. 12:
// the mailbox of returned mail is read; images can be installation media, which are in
// the CD drives of instances; sellers have tax settings, and price books no taxes;
// identity providers may use SAML. 13: instances can be rescued with a medium; Ceph's
// monitors have addresses of their own; payments have refunds and disputes; addresses
// from which mail was returned are suppressed. 14: tunnels between nodes can be encrypted;
// VAT numbers are verified with VIES. 15: stopped instances migrate with their disks, and volumes without an instance;
// organizations have identity providers of their own; people can sign up in the portals
// of resellers; certificates are requested by ACME; histories of
// instances and events have causes; disks of Ceph can be encrypted; final invoices cover
// parts of a month.
const Level = 15

// OfflineMigrationLevel is the level from which stopped instances migrate: an older
// source would refuse it, and an older leader would assign the instance to its target
// without the volumes that were copied. From the same level, volumes without an instance
// do.
const OfflineMigrationLevel = 15

// OwnProviderLevel is the level from which identity providers belong to organizations: older
// programs would offer such a provider to everybody, and let it sign in any user.
const OwnProviderLevel = 15

// CertificateLevel is the level from which certificates are requested: older programs do not
// know the kind of the settings, and would not answer challenges.
const CertificateLevel = 15

// ResellerSignUpLevel is the level from which people can sign up in the portals of
// resellers: an older program would accept a link of such a portal in that of the cluster.
const ResellerSignUpLevel = 15

// causesLevel is the level from which histories of instances have causes, and events their
// sentences: what an older program stores would differ.
const causesLevel = 15

// DiskEncryptionLevel is the level from which disks of Ceph can be encrypted: an older
// leader would forget their keys, and an older node would neither encrypt nor open them.
const DiskEncryptionLevel = 15

// FinalInvoiceLevel is the level from which invoices cover parts of a month: an older leader
// would charge the commitments of the whole month with the next invoice.
const FinalInvoiceLevel = 15

// EncryptionLevel is the level from which tunnels between nodes can be encrypted: an older
// node would send and accept plain packets only, and an older leader would forget the
// stage.
const EncryptionLevel = 14

// VerifyLevel is the level from which VAT numbers are verified: older programs would apply
// the reverse charge without that.
const VerifyLevel = 14

// StorageNetworkLevel is the level from which Ceph can use the storage network: an older
// leader would forget the addresses of the monitors.
const StorageNetworkLevel = 13

// RefundLevel is the level from which payments have refunds and disputes: older programs
// would count their entries in the ledger as money that was received, and drop what was
// refunded or disputed of a payment.
const RefundLevel = 13

// SuppressionLevel is the level from which addresses are suppressed from which mail was
// returned: older programs do not know the kind, and would send mail to them.
const SuppressionLevel = 13

// BounceLevel is the level from which messages can have been returned: older programs
// would send such a message again.
const BounceLevel = 12

// RescueLevel is the level from which an instance boots from its rescue medium.
const RescueLevel = 13

// MediumLevel is the level from which instances have CD drives with media, and root
// volumes without an image: an older node would start an instance without them, and an
// older state machine would let a medium be deleted.
const MediumLevel = 12

// TaxLevel is the level from which sellers have tax settings: it moves the taxes of price
// books there.
const TaxLevel = 12

// SAMLLevel is the level from which identity providers may use SAML: older programs would
// drop a provider's certificates, and begin sign-ins with it by OpenID Connect.
const SAMLLevel = 12

// GroupLevel is the level from which organizations have groups, and directories provision
// users: older programs would neither count groups, nor check what they refer to, nor keep
// what a directory has decided.
const GroupLevel = 11

// MachineStateLevel is the level from which nodes store sealed states of machines, which
// older programs cannot read, beside root volumes.
const MachineStateLevel = 10

// CPUPolicyLevel is the level from which flavors and instances have a CPU policy: an
// older planner would drop the CPUs of an assignment that it changes, and give them to
// another instance.
const CPUPolicyLevel = 10

// MachineClassLevel is the level from which flavors and instances have huge pages, a GPU
// model, firmware, a TPM and an operating system: an older node would start an instance
// without them.
const MachineClassLevel = 10

// DeviceClassLevel is the level from which Ceph's pools and disks have device classes,
// and disks a database on another disk: an older node would add a disk without them.
const DeviceClassLevel = 10

// CAReplacementLevel is the level from which the cluster's CA can be replaced: older nodes
// would not renew their certificates, and would sign others with the old CA.
const CAReplacementLevel = 10

// CardChargeLevel is the level from which checkouts charge a card on file: an older leader
// would end one without a page, although the card may have been charged.
const CardChargeLevel = 10

// AttributesLevel is the level from which usage records have attributes: older rows
// have none, and older programs cannot read rows that do.
const AttributesLevel = 9

// auditLevel is the level from which events of the audit log are sealed.
const auditLevel = 8

// defaultLevel is the level of tables without one: clusters of up to that level had
// members of one release only.
const defaultLevel = 6

// settledVersion is the first byte of a log entry that sets the cluster's ID and its
// feature level; JSON follows. Such an entry is not a batch.
const settledVersion = 11

// Settlement is the content of such an entry.
type Settlement struct {
	Level   int      `json:"level"`
	ID      string   `json:"id"`      // of the cluster, which has one from then on
	Members []string `json:"members"` // those that are known to support the level
	// AuditKey seals the audit log's events from then on, if there is no such key.
	AuditKey []byte `json:"auditKey,omitempty"`
}

var (
	metaLevel = []byte("level") // uint64
	metaID    = []byte("id")    // text

	// metaAuditKey holds the first event that the key seals, uint64, and the key. It
	// leaves the tables with Raft's snapshots, which only members see, and not with
	// backups.
	metaAuditKey = []byte("audit-key")
)

// Level returns the cluster's feature level at the applied entry.
func (v View) Level() int {
	if n := number(v.tx.Bucket(bucketMeta).Get(metaLevel)); n != 0 {
		return int(n)
	}
	return defaultLevel
}

// Untouched reports whether no entry was ever applied.
func (v View) Untouched() bool {
	return v.Applied() == 0 && v.Revision() == 0 && v.tx.Bucket(bucketMeta).Get(metaLevel) == nil
}

// ClusterID returns the cluster's ID, which is empty before level 7.
func (v View) ClusterID() string { return string(v.tx.Bucket(bucketMeta).Get(metaID)) }

// EncodeSettlement returns the log entry of a settlement.
func EncodeSettlement(s Settlement) ([]byte, error) {
	raw, err := json.Marshal(s)
	return append([]byte{settledVersion}, raw...), err
}

// applySettled applies such an entry. A node that has joined since the members were
// asked may not support the level: in that case nothing changes.
func (v View) applySettled(raw []byte) (Answer, error) {
	var s Settlement
	if err := json.Unmarshal(raw, &s); err != nil {
		return Answer{}, fmt.Errorf("decode log entry: %w", err)
	}
	if s.Level > v.group.level {
		return Answer{}, UnsupportedLevel(s.Level)
	}
	prefix := join(string(api.KindNode), "")
	c := v.tx.Bucket(bucketObjects).Cursor()
	for k, _ := c.Seek(prefix); len(k) > len(prefix) && string(k[:len(prefix)]) == string(prefix); k, _ = c.Next() {
		if id := string(k[len(prefix):]); !slices.Contains(s.Members, id) {
			return Answer{Refused: api.Errorf(api.CodeConflict, "feature level supported by node %s is unknown", id).WithHint("try again")}, nil
		}
	}
	return Answer{}, v.Settle(s)
}

// Settle stores the higher of the two levels, and the first ID.
func (v View) Settle(s Settlement) error {
	if v.group == nil { // not an entry of the log
		v.group = &group{names: interned{}, most: api.MaxWebhookEvents, level: Level}
	}
	meta, was := v.tx.Bucket(bucketMeta), v.Level()
	if max(s.Level, was) >= referencesLevel {
		if err := v.indexReferences(); err != nil {
			return err
		}
	}
	if err := meta.Put(metaLevel, be64(uint64(max(s.Level, was)))); err != nil {
		return err
	}
	if was < countsLevel && s.Level >= countsLevel {
		if err := v.countKinds(); err != nil {
			return err
		}
	}
	if was < TaxLevel && s.Level >= TaxLevel {
		if err := v.convertTaxes(); err != nil {
			return err
		}
	}
	if v.ClusterID() == "" && s.ID != "" {
		if err := meta.Put(metaID, []byte(s.ID)); err != nil {
			return err
		}
	}
	if v.Level() < auditLevel || len(s.AuditKey) == 0 || meta.Get(metaAuditKey) != nil {
		return nil
	}
	last, err := v.lastEvent()
	if err != nil {
		return err
	}
	return meta.Put(metaAuditKey, append(be64(uint64(last.Seq)+1), s.AuditKey...))
}

// TooOld is the error of a program that is older than the cluster's feature level.
type TooOld struct{ What string }

// Error returns the problem and how to solve it.
func (t *TooOld) Error() string {
	return fmt.Sprintf("%s, and this program supports feature levels up to %d: install the cluster's release on this node", t.What, Level)
}

// UnsupportedLevel returns the TooOld error for a cluster at a level above this program's own.
func UnsupportedLevel(level int) error {
	return &TooOld{fmt.Sprintf("the cluster has feature level %d", level)}
}
