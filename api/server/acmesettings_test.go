package server_test

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestACMESettings checks that operators configure certificates, that each directory has an
// account with its own key, and that no private key is ever returned.
func TestACMESettings(t *testing.T) {
	b := newBazaar(t)
	const path = "/v1/acme-settings"
	for field, s := range map[string]api.ACMESettings{
		"acceptTerms":  {Enabled: true, DirectoryURL: "https://ca.example/directory"},
		"directoryURL": {DirectoryURL: "http://ca.example/directory"},
		"email":        {Email: "nonsense"},
	} {
		if _, err := ask[api.ACMESettings](b.people, b.Token, "PUT", path, s); err == nil || err.Field != field {
			t.Errorf("invalid %s: error %v, want one there", field, err)
		}
	}
	if _, err := ask[api.ACMESettings](b.people, b.Token, "PUT", path, api.ACMESettings{Enabled: true, AcceptTerms: true}); err == nil || err.Field != "directoryURL" {
		t.Errorf("enable without a directory: %v, want an error at directoryURL", err)
	}
	_, err := ask[api.ACMESettings](b.people, b.topKey, "GET", path, nil)
	wanted(t, "read by a reseller", err, api.CodeForbidden)
	key := func() string {
		t.Helper()
		s, err := api.Settings[api.StoredACMESettings](t.Context(), b.Store, api.KindACMESettings, api.ACMESettingsID)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(s.Spec.AccountKey, "sealed:") {
			t.Fatalf("stored key = %q, want a sealed one", s.Spec.AccountKey)
		}
		return s.Spec.AccountKey
	}
	now, err := ask[api.ACMESettings](b.people, b.Token, "PUT", path, api.ACMESettings{Enabled: true, AcceptTerms: true, DirectoryURL: "https://ca.example/directory"})
	wanted(t, "enable", err, "")
	first := key()
	now.Email = "ops@example.com"
	now, err = ask[api.ACMESettings](b.people, b.Token, "PUT", path, now)
	wanted(t, "change the address", err, "")
	if key() != first {
		t.Error("a change of the e-mail address has created another account, want the same")
	}
	now.DirectoryURL = "https://other.example/directory"
	_, err = ask[api.ACMESettings](b.people, b.Token, "PUT", path, now)
	wanted(t, "change the directory", err, "")
	if key() == first {
		t.Error("another directory has the same account's key, want its own")
	}
	// Certificates are shown, keys and answers of challenges are not.
	d := b.approved(b.top, "portal.top.example")
	st := api.CertificateStatus{HostName: d.Meta.Name, Certificate: "shown", Key: "hidden-1", ChallengeCertificate: "hidden-2", ChallengeKey: "hidden-3"}
	b.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindPortalDomain, ID: d.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(st)},
		api.Command{Op: api.OpReport, Kind: api.KindACMESettings, ID: api.ACMECertificateID, Expect: api.AnyRevision, Data: api.Encode(st)})
	for _, at := range []string{path, "/v1/portal-domains", "/v1/portal-domains/" + d.Meta.ID} {
		body := b.call("GET", at, b.Token, "").Body.String()
		if !strings.Contains(body, "shown") || strings.Contains(body, "hidden") || strings.Contains(body, "sealed:") {
			t.Errorf("GET %s = %s, want the certificate without secrets", at, body)
		}
	}
	// A reseller cannot write what the cluster reports.
	d, err = ask[api.PortalDomain](b.people, b.topKey, "GET", "/v1/portal-domains/"+d.Meta.ID, nil)
	wanted(t, "read by its reseller", err, "")
	d.Status = api.CertificateStatus{Certificate: "forged"}
	got, err := b.change(b.topKey, d)
	wanted(t, "write a status", err, "")
	if got.Status.Certificate != "shown" {
		t.Errorf("status after a change by the reseller = %+v, want that of the cluster", got.Status)
	}
}
