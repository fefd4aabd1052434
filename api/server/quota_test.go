package server_test

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestQuota checks that exactly the quota can be used, and that deleting objects frees
// it.
func TestQuota(t *testing.T) {
	w := newNetworkWorld(t)
	set := func(quota api.Amounts) error {
		p := must(t, ret(client.Of[api.Project](w.op).Get(t.Context(), w.web, client.Query{}))).v
		p.Spec.Quota = quota
		_, err := client.Of[api.Project](w.op).Update(t.Context(), w.web, p)
		return err
	}
	one := must(t, ret(w.instance(w.op, "one"))).v
	q := must(t, ret(w.op.ProjectQuota(t.Context(), w.web, ""))).v
	if q.Uses[api.QuotaInstances] != 1 || q.Uses[api.QuotaVCPUs] == 0 || q.Uses[api.QuotaMemory] == 0 || len(q.Limits) != 0 {
		t.Fatalf("quota of the project = %+v, want the use of one instance and no limits", q)
	}
	must(t, one, set(api.Amounts{api.QuotaInstances: 2, api.QuotaVolumes: q.Uses[api.QuotaVolumes] + 12<<30, api.QuotaFloatingIPs: 0}))
	must(t, ret(w.instance(w.op, "two")))
	_, err := w.instance(w.op, "three")
	wantCode(t, "a third instance", api.CodeQuota, err)
	if want := "instance quota of project web exceeded: 2 of 2 used, 1 requested"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("create a third instance: %v, want %s", err, want)
	}

	volume := api.Volume{Meta: api.Meta{Name: "data", Project: w.web}, Spec: api.VolumeSpec{SizeBytes: 8 << 30}}
	v := must(t, ret(client.Of[api.Volume](w.op).Create(t.Context(), volume))).v
	v.Spec.SizeBytes = 1 << 40
	_, err = client.Of[api.Volume](w.op).Update(t.Context(), v.Meta.ID, v)
	wantCode(t, "a volume that grows", api.CodeQuota, err)
	v.Spec.SizeBytes = 9 << 30
	must(t, ret(client.Of[api.Volume](w.op).Update(t.Context(), v.Meta.ID, v)))
	volume.Meta.Name = "more"
	_, err = client.Of[api.Volume](w.op).Create(t.Context(), volume)
	wantCode(t, "another volume", api.CodeQuota, err)

	for _, bad := range []api.Amounts{{"cats": 1}, {api.QuotaVCPUs: -1}} {
		wantCode(t, "a quota that cannot be", api.CodeInvalid, set(bad))
	}
	o := must(t, ret(w.op.OrganizationQuota(t.Context(), w.acme))).v
	if o.Uses[api.QuotaInstances] < 2 || o.Uses[api.QuotaVolumes] < 9<<30 {
		t.Errorf("use of the organization = %+v, want at least 2 instances and 9 GiB of volumes", o.Uses)
	}
	must(t, one, set(nil))
	must(t, ret(w.instance(w.op, "three")))
}

// TestEveryKindHasAQuota checks that every kind of object that roles other than
// operator can create has a quota with a default limit. It reads the operations from
// the table of rights.
func TestEveryKindHasAQuota(t *testing.T) {
	raw, err := os.ReadFile("testdata/rights.txt")
	if err != nil {
		t.Fatal(err)
	}
	// Instances and floating IPs report amounts. A login link lasts a minute, and the
	// open checkouts and the cards of an organization are limited to ten each
	// (TestOpenCheckouts, TestCards). A refund comes with a payment, which has a quota.
	says := map[string]string{"Instance": api.QuotaInstances, "FloatingIP": api.QuotaFloatingIPs}
	short := []string{"ServiceLoginLink", "UserLoginLink", "Checkout", "Card", "Refund"}
	operation := regexp.MustCompile(`(?m)^(?:Create(\w+)|Put(Service)) +(\S .*)$`)
	checked := 0
	for _, m := range operation.FindAllStringSubmatch(string(raw), -1) {
		kind, roles := m[1]+m[2], m[3]
		if strings.Trim(roles, "o- ") == "" || slices.Contains(short, kind) {
			continue
		}
		checked++
		quota := cmp.Or(api.CountQuota(api.Kind(kind)), says[kind])
		if most, limited := api.DefaultQuota(quota); quota == "" || !limited || most < 1 {
			t.Errorf("%s can be created by %s without a quota (%q, default %d): set Quota and Most in the kind's row in api/kinds.go", kind, roles, quota, most)
		}
	}
	if checked < 15 {
		t.Errorf("found %d kinds in testdata/rights.txt, want at least 15", checked)
	}
}
