package cli

import (
	"cmp"

	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) portalDomains() *kind[api.PortalDomain] {
	return &kind[api.PortalDomain]{
		app: a, noun: "portal-domain", about: "Host names of resellers' portals",
		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"ORGANIZATION", "APPROVED", "CERTIFICATE"},
		row: func(d api.PortalDomain) []string {
			approved := "no"
			if d.Spec.Approved {
				approved = "yes"
			}
			return []string{a.named(d.Meta.Organization), approved, a.portalCertificate(d)}
		},
		flags: portalDomainFlags,
	}
}

// portalCertificate describes the certificate of a host name: the one that was stored, or the
// one that the cluster requested.
func (a *App) portalCertificate(d api.PortalDomain) string {
	if d.Uploaded(a.Now()) {
		return "until " + formatTime(*d.Spec.ExpiresAt)
	}
	none := "the cluster's"
	if d.Spec.ExpiresAt != nil {
		none = "expired"
	}
	return cmp.Or(a.requestedCertificate(d.Status), none)
}

func portalDomainFlags(f *pflag.FlagSet) func(*api.PortalDomain) error {
	approve := f.Bool("approve", false, "the name is in effect; only operators change this")
	cert := f.String("cert-file", "", "certificate for the name, with the intermediate ones after it (PEM)")
	key := f.String("key-file", "", "private key of the certificate (PEM)")
	noCert := f.Bool("no-cert", false, "remove the certificate")
	return func(d *api.PortalDomain) error {
		if *noCert {
			d.Spec.Certificate, d.Spec.Key = "", ""
		}
		if f.Changed("approve") {
			d.Spec.Approved = *approve
		}
		if err := secretFile(*cert, &d.Spec.Certificate); err != nil {
			return err
		}
		return secretFile(*key, &d.Spec.Key)
	}
}
