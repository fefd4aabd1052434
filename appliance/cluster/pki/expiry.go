package pki

import (
	"fmt"
	"time"
)

// caWarning is how long before its expiry a CA should be rotated.
const caWarning = 180 * 24 * time.Hour

// RenewAt returns the time at which a third of the certificate's lifetime is left.
func (s *CertificateStore) RenewAt() time.Time {
	leaf := s.current.Load().leaf
	return leaf.NotAfter.Add(-leaf.NotAfter.Sub(leaf.NotBefore) / 3)
}

// Ends returns the expiry of the current certificate.
func (s *CertificateStore) Ends() time.Time { return s.current.Load().leaf.NotAfter }

// Warning is a problem with this node's certificates that an operator should know
// about.
type Warning struct {
	Subject string    // "node" or the CA's name
	Ends    time.Time // of the certificate
	Message string
	Hint    string
}

// Warnings returns the current warnings.
func (s *CertificateStore) Warnings() []Warning {
	id, now := s.current.Load(), s.now()
	var all []Warning
	warn := func(subject string, ends time.Time, message, hint string) {
		all = append(all, Warning{subject, ends, message, hint})
	}
	const clock = "check this node's clock; a node that was off for a long time needs `basalt node join` with a new token"
	life := id.leaf.NotAfter.Sub(id.leaf.NotBefore)
	switch left := id.leaf.NotAfter.Sub(now); {
	case left <= 0:
		warn("node", id.leaf.NotAfter, "this node's certificate ended "+date(id.leaf.NotAfter), clock)
	case left < life/6: // half of the time for renewal has passed
		warn("node", id.leaf.NotAfter, "this node's certificate ends "+date(id.leaf.NotAfter)+" and could not be renewed",
			"check that this node reaches the cluster's leader")
	case now.Before(id.leaf.NotBefore):
		warn("node", id.leaf.NotAfter, "this node's certificate begins only "+date(id.leaf.NotBefore), "check this node's clock")
	}
	if !id.trustsItself() {
		warn("node", id.leaf.NotAfter, "this node's certificate is of a CA that the cluster no longer trusts", clock)
	}
	for _, ca := range id.bundle {
		if ca.NotAfter.Sub(now) < caWarning {
			warn(ca.Subject.CommonName, ca.NotAfter, fmt.Sprintf("the CA %q ends %s", ca.Subject.CommonName, date(ca.NotAfter)), "replace it: basalt cluster ca replace")
		}
	}
	return all
}

func date(t time.Time) string { return "on " + t.UTC().Format("2006-01-02 15:04 UTC") }
