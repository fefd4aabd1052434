package store

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// newFields are the fields of specs that programs below a feature level would ignore or
// drop, although what runs depends on them. The last column is what a user calls it.
var newFields = []struct {
	kinds []api.Kind
	path  string // below spec, or ofOrganization; with "=VALUE", only that value
	level int
	what  string
}{
	{[]api.Kind{api.KindFlavor, api.KindInstance}, "cpuPolicy", state.CPUPolicyLevel, "dedicated CPUs"},
	{[]api.Kind{api.KindFlavor, api.KindInstance}, "hugePages", state.MachineClassLevel, "huge pages"},
	{[]api.Kind{api.KindInstance}, "vgpu.model", state.MachineClassLevel, "the choice of a GPU model"},
	{[]api.Kind{api.KindInstance}, "firmware", state.MachineClassLevel, "a choice of firmware"},
	{[]api.Kind{api.KindInstance}, "tpm", state.MachineClassLevel, "TPMs"},
	{[]api.Kind{api.KindInstance}, "os", state.MachineClassLevel, "instances for Windows"},
	{[]api.Kind{api.KindInstance}, "media", state.MediumLevel, "CD drives"},
	{[]api.Kind{api.KindInstance}, "bootFrom", state.MediumLevel, "a choice of the boot order"},
	{[]api.Kind{api.KindInstance}, "rescue", state.RescueLevel, "rescuing instances"},
	{[]api.Kind{api.KindImage}, "format=" + api.FormatISO, state.MediumLevel, "installation media"},
	{[]api.Kind{api.KindImage}, "abilities.os", state.MachineClassLevel, "operating systems of images"},
	{[]api.Kind{api.KindNode}, "reservedCpus", state.MachineClassLevel, "a number of CPUs that a node keeps"},
	{[]api.Kind{api.KindCephCluster, api.KindDisk}, "deviceClass", state.DeviceClassLevel, "device classes of Ceph"},
	{[]api.Kind{api.KindCephCluster}, "encryptDisks", state.DiskEncryptionLevel, "encrypted disks of Ceph"},
	{[]api.Kind{api.KindCephCluster}, "pools", state.DeviceClassLevel, "additional pools of Ceph"},
	{[]api.Kind{api.KindDisk}, "dbDisk", state.DeviceClassLevel, "databases of Ceph on other disks"},
	{[]api.Kind{api.KindCheckout}, "card", state.CardChargeLevel, "charges of cards on file"},
	{[]api.Kind{api.KindGroup}, "source", state.GroupLevel, "groups"}, // each has one
	{[]api.Kind{api.KindUser}, "scim", state.GroupLevel, "users of a directory"},
	{[]api.Kind{api.KindIdentityProvider}, "groupsClaim", state.GroupLevel, "groups"},
	{[]api.Kind{api.KindMailSettings}, "bounces", state.BounceLevel, "reading returned mail"},
	{[]api.Kind{api.KindPriceBook}, "currency", state.TaxLevel, "changes of price books, whose taxes move to tax settings"}, // each has one
	{[]api.Kind{api.KindInvoice}, "tax", state.TaxLevel, "taxes by country"},                                                // each has one
	{[]api.Kind{api.KindInvoice}, "month", state.FinalInvoiceLevel, "final invoices"},
	{[]api.Kind{api.KindTaxSettings}, "country", state.TaxLevel, "taxes by country"},
	{[]api.Kind{api.KindTaxSettings}, "rates", state.TaxLevel, "taxes by country"},
	{[]api.Kind{api.KindTaxSettings}, "other", state.TaxLevel, "taxes by country"},
	{[]api.Kind{api.KindOrganization}, "billing.country", state.TaxLevel, "taxes by country"},
	{[]api.Kind{api.KindIdentityProvider}, "saml", state.SAMLLevel, "SAML"},
	{[]api.Kind{api.KindIdentityProvider}, ofOrganization, state.OwnProviderLevel, "identity providers of organizations"},
	{[]api.Kind{api.KindMailSuppression}, "address", state.SuppressionLevel, "addresses from which mail was returned"}, // each has one
	{[]api.Kind{api.KindDispute}, "payment", state.RefundLevel, "disputes of payments"},
	{[]api.Kind{api.KindPaymentSettings}, "chargeDisputeFees", state.RefundLevel, "disputes of payments"},
	{[]api.Kind{api.KindTaxSettings}, "verifyNumbers", state.VerifyLevel, "verification of VAT numbers"},
	{[]api.Kind{api.KindVATCheck}, "number", state.VerifyLevel, "verification of VAT numbers"}, // each has one
	{[]api.Kind{api.KindRefund}, "payment", state.RefundLevel, "refunds of payments"},          // each has one
	{[]api.Kind{api.KindSecuritySettings}, "encryptTunnels", state.EncryptionLevel, "encrypted tunnels"},
	{[]api.Kind{api.KindMigration}, "offline", state.OfflineMigrationLevel, "migration of stopped instances"},
	{[]api.Kind{api.KindMigration}, "volume", state.OfflineMigrationLevel, "migration of volumes"},
	{[]api.Kind{api.KindACMESettings}, "directoryURL", state.CertificateLevel, "requesting certificates"},
	{[]api.Kind{api.KindSignUpSettings}, "resellers", state.ResellerSignUpLevel, "sign-up in the portals of resellers"},
}

// ofOrganization is the path of meta.organization, for a kind whose objects did not belong to
// organizations.
const ofOrganization = "meta.organization"

// checkNewFields refuses specs with a field that not all members of the cluster support.
func (s *Store) checkNewFields(b api.Batch) error {
	level, _, err := s.Settled()
	if err != nil || level >= state.Level {
		return err
	}
	for _, c := range b.Commands {
		if c.Op != api.OpPutSpec {
			continue
		}
		var spec map[string]any
		for _, f := range newFields {
			if level >= f.level || !slices.Contains(f.kinds, c.Kind) {
				continue
			}
			if spec == nil && json.Unmarshal(c.Data, &spec) != nil {
				break // another check reports what is not an object
			}
			field, _, _ := strings.Cut("spec."+f.path, "=")
			set := isSet(spec, f.path)
			if f.path == ofOrganization {
				field, set = f.path, c.Organization != ""
			}
			if set {
				return api.Errorf(api.CodeState, "not all nodes support %s", f.what).At(field).WithHint("upgrade all nodes of the cluster first")
			}
		}
	}
	return nil
}

// isSet reports whether the field at the path, whose elements are separated by dots, is
// present and not empty, and has the value after a "=" in the path if there is one.
func isSet(object map[string]any, path string) bool {
	path, want, exact := strings.Cut(path, "=")
	first, rest, nested := strings.Cut(path, ".")
	value := object[first]
	if nested {
		below, _ := value.(map[string]any)
		return isSet(below, rest)
	}
	if exact {
		return value == want
	}
	switch v := value.(type) {
	case nil:
		return false
	case string:
		return v != ""
	case bool:
		return v
	case []any:
		return len(v) > 0
	}
	return true
}
