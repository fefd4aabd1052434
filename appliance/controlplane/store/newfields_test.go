package store

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// specWith returns the JSON text of an object with a value at the path.
func specWith(path, value string) string {
	for _, name := range slices.Backward(strings.Split(path, ".")) {
		value = `{"` + name + `":` + value + `}`
	}
	return value
}

// inOrganization stands for an object of an organization.
const inOrganization = "in an organization"

// TestNewFieldsNeedTheirLevel checks that specs with a field of a later feature level are
// refused until the cluster has the level, and specs without it, or with it empty, are not.
func TestNewFieldsNeedTheirLevel(t *testing.T) {
	r := replica(t, t.TempDir(), "a", 0)
	put := func(kind api.Kind, spec string) error {
		c := api.Command{Op: api.OpPutSpec, Kind: kind, ID: "x", Name: "x", Data: []byte(spec)}
		if spec == inOrganization {
			c.Organization, c.Data = "org-000000000001", []byte(`{}`)
		}
		_, err := r.EncodeBatch(1, api.Batch{At: time.Unix(1, 0), Commands: []api.Command{c}})
		return err
	}
	values := map[string]string{"tpm": "true", "media": `[""]`, "pools": `[{"deviceClass":"ssd"}]`}
	set := func(path string) string {
		if path == ofOrganization {
			return inOrganization
		}
		if field, value, exact := strings.Cut(path, "="); exact {
			return specWith(field, `"`+value+`"`)
		}
		if v := values[path]; v != "" {
			return specWith(path, v)
		}
		return specWith(path, `"x"`)
	}
	for _, f := range newFields {
		for _, kind := range f.kinds {
			if err := put(kind, set(f.path)); api.CodeOf(err) != api.CodeState || !strings.Contains(err.Error(), f.what) {
				t.Errorf("%s with %s before level %d = %v, want %s and %q", kind, f.path, f.level, err, api.CodeState, f.what)
			}
			field, _, exact := strings.Cut(f.path, "=")
			empty := []string{`{}`, specWith(field, `""`), specWith(field, `false`), specWith(field, `[]`), specWith(field, `null`)}
			if exact {
				empty = append(empty, specWith(field, `"another value"`))
			}
			for _, spec := range empty {
				if err := put(kind, spec); err != nil {
					t.Errorf("%s with spec %s = %v, want nil", kind, spec, err)
				}
			}
		}
	}
	settled, err := state.EncodeSettlement(state.Settlement{Level: state.Level, ID: "0123", Members: []string{"a"}, AuditKey: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Append(LogEntry{1, 1, settled}); err != nil {
		t.Fatal(err)
	}
	if _, refused, err := r.Apply(1); refused != nil || err != nil {
		t.Fatalf("apply the settlement: refused with %v, %v", refused, err)
	}
	for _, f := range newFields {
		if err := put(f.kinds[0], set(f.path)); err != nil {
			t.Errorf("%s with %s at level %d = %v, want nil", f.kinds[0], f.path, state.Level, err)
		}
	}
}

// TestNewFieldsExist checks that each row names a field of its kinds.
func TestNewFieldsExist(t *testing.T) {
	specs := map[api.Kind]any{api.KindFlavor: api.FlavorSpec{}, api.KindInstance: api.InstanceSpec{}, api.KindCephCluster: api.CephClusterSpec{}, api.KindDisk: api.DiskSpec{}, api.KindCheckout: api.CheckoutSpec{}, api.KindNode: api.NodeSpec{}, api.KindImage: api.ImageSpec{},
		api.KindGroup: api.GroupSpec{}, api.KindUser: api.UserSpec{}, api.KindIdentityProvider: api.IdentityProviderSpec{}, api.KindMailSettings: api.MailSettingsSpec{},
		api.KindPriceBook: api.PriceBookSpec{}, api.KindInvoice: api.InvoiceSpec{}, api.KindTaxSettings: api.TaxSettings{}, api.KindOrganization: api.OrganizationSpec{},
		api.KindRefund: api.RefundSpec{}, api.KindMailSuppression: api.MailSuppressionSpec{}, api.KindDispute: api.DisputeSpec{}, api.KindVATCheck: api.VATCheckSpec{}, api.KindPaymentSettings: api.PaymentSettingsSpec{}, api.KindSecuritySettings: api.SecuritySettingsSpec{}, api.KindMigration: api.MigrationSpec{}, api.KindSignUpSettings: api.SignUpSettingsSpec{}, api.KindACMESettings: api.ACMESettingsSpec{}}
	for _, f := range newFields {
		for _, kind := range f.kinds {
			if f.path != ofOrganization && !hasField(reflect.TypeOf(specs[kind]), f.path) {
				t.Errorf("the spec of %s has no field %s", kind, f.path)
			}
		}
	}
}

// hasField reports whether a struct has a field with that path of JSON names.
func hasField(of reflect.Type, path string) bool {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return false
	}
	path, _, _ = strings.Cut(path, "=")
	first, rest, nested := strings.Cut(path, ".")
	for i := range of.NumField() {
		if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name == first {
			return !nested || hasField(of.Field(i).Type, rest)
		}
	}
	return false
}
