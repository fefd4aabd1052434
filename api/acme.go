package api

import (
	"net/url"
	"strings"
	"time"
)

// IDs of the objects of KindACMESettings.
const (
	ACMESettingsID    = "acme-000000000000"
	ACMECertificateID = "acme-000000000001" // its status is the certificate of the cluster's portal; its spec is empty
)

// CertificateReady is the type of the condition of a certificate.
const CertificateReady = "CertificateReady"

// Reasons of the condition CertificateReady.
const (
	CertificateIssued      = "Issued"
	CertificateRequested   = "Requested" // is being requested for the first time
	CertificateFailed      = "Failed"
	CertificateRateLimited = "RateLimited"
)

// ACMESettingsSpec is the settings in the form that the store keeps.
type ACMESettingsSpec struct {
	Enabled      bool   `json:"enabled,omitempty"`
	DirectoryURL string `json:"directoryURL,omitempty"`
	AcceptTerms  bool   `json:"acceptTerms,omitempty"`
	Email        string `json:"email,omitempty"`
	// AccountKey is the private key of the account at the directory: PEM, sealed.
	AccountKey string `json:"accountKey,omitempty"`
}

// StoredACMESettings is the stored settings object.
type StoredACMESettings struct {
	Kind   Kind
	Meta   Meta
	Spec   ACMESettingsSpec
	Status CertificateStatus
}

// View returns the settings, and the certificate of the cluster's portal, without secrets.
func (s StoredACMESettings) View(portal CertificateStatus) ACMESettings {
	return ACMESettings{Revision: s.Meta.Revision, Enabled: s.Spec.Enabled, DirectoryURL: s.Spec.DirectoryURL, AcceptTerms: s.Spec.AcceptTerms, Email: s.Spec.Email, Status: portal}
}

// Spec returns the settings in a client's request, without the account's key.
func (s ACMESettings) Spec() ACMESettingsSpec {
	return ACMESettingsSpec{Enabled: s.Enabled, DirectoryURL: s.DirectoryURL, AcceptTerms: s.AcceptTerms, Email: Login(s.Email)}
}

// ValidateACMESettings checks settings that Spec returned.
func ValidateACMESettings(s ACMESettingsSpec) error {
	var bad faults
	if s.DirectoryURL != "" {
		u, err := url.Parse(s.DirectoryURL)
		if err != nil || len(s.DirectoryURL) > maxSupportURL || u.Scheme != "https" || u.Host == "" || u.User != nil || hasControl(s.DirectoryURL) {
			bad.note(invalid("directoryURL", "%q is not a valid address of a directory", clip(s.DirectoryURL)).WithHint("e.g. https://acme-v02.api.letsencrypt.org/directory"))
		}
	}
	if s.Email != "" {
		if err := ValidateLogin(s.Email); err != nil {
			bad.note(invalid("email", "%q is not a valid e-mail address", clip(s.Email)))
		}
	}
	if s.Enabled && s.DirectoryURL == "" {
		bad.note(invalid("directoryURL", "is required to request certificates").WithHint("e.g. https://acme-v02.api.letsencrypt.org/directory"))
	}
	if s.Enabled && !s.AcceptTerms {
		bad.note(invalid("acceptTerms", "the terms of the certificate authority must be accepted").WithHint("read them at its site, and accept them"))
	}
	return bad.err()
}

// PortalHost returns the host name of the cluster's portal for which a certificate can be
// requested; empty: the address of the portal is none, or has none.
func PortalHost(portalURL string) string {
	u, err := url.Parse(portalURL)
	if err != nil || u.Scheme != "https" {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if ValidatePortalDomainName(host) != nil {
		return ""
	}
	return host
}

// Uploaded reports whether a host name has a certificate that its owner has stored and that
// is valid at a time: it is preferred to one that was requested.
func (d PortalDomain) Uploaded(now time.Time) bool {
	return d.Spec.Certificate != "" && d.Spec.ExpiresAt != nil && now.Before(*d.Spec.ExpiresAt)
}
