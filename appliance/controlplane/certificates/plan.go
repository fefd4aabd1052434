package certificates

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/crypto/acme"

	"github.com/basalt-gpu/basalt/api"
)

// retries are the delays after failures: at most three requests in the first hour, as
// authorities limit the failures of a name.
var retries = api.Backoff{First: 15 * time.Minute, Last: 24 * time.Hour}

// limitedWait is how long all names wait after a refusal for too many requests that does
// not say how long.
const limitedWait = time.Hour

// maxReason limits the text of the authority in a condition, in bytes.
const maxReason = 500

// State is what decides which certificates are requested.
type State struct {
	Settings  api.ACMESettingsSpec
	PortalURL string                // of the mail settings
	Portal    api.CertificateStatus // of the cluster's portal
	// OwnFile means that the cluster's portal has a certificate file on this node.
	OwnFile bool
	Domains []api.PortalDomain
}

// name is a host name for which a certificate is requested.
type name struct {
	host   string
	kind   api.Kind // of the object whose status has the certificate
	id     string
	status api.CertificateStatus
}

// due returns the host names for which a certificate is to be requested now, those first
// that have waited longest.
func due(s State, now time.Time) []name {
	if !s.Settings.Enabled || !s.Settings.AcceptTerms {
		return nil
	}
	var all []name
	own := api.PortalHost(s.PortalURL)
	if own != "" && !s.OwnFile {
		n := name{host: own, kind: api.KindACMESettings, id: api.ACMECertificateID, status: s.Portal}
		if n.status.HostName != own { // the address of the portal was changed
			n.status = api.CertificateStatus{}
		}
		all = append(all, n)
	}
	for _, d := range s.Domains {
		if d.Spec.Approved && d.Meta.DeletedAt == nil && d.Meta.Name != own && !d.Uploaded(now) {
			all = append(all, name{host: d.Meta.Name, kind: api.KindPortalDomain, id: d.Meta.ID, status: d.Status})
		}
	}
	all = slices.DeleteFunc(all, func(n name) bool { return n.status.NextAt != nil && now.Before(*n.status.NextAt) })
	slices.SortStableFunc(all, func(a, b name) int { return cmp.Or(since(a).Compare(since(b)), cmp.Compare(a.host, b.host)) })
	return all
}

func since(n name) time.Time {
	if n.status.NextAt == nil {
		return time.Time{}
	}
	return *n.status.NextAt
}

// requested returns the status of a name while its challenge is answered. If this node stops
// before there is an outcome, it counts as a failure.
func requested(n name, certificate, sealedKey string, now time.Time) api.CertificateStatus {
	st := n.status
	st.HostName, st.ChallengeCertificate, st.ChallengeKey = n.host, certificate, sealedKey
	st.Attempts++
	st.NextAt = at(now.Add(retries.Wait(n.id, st.Attempts)))
	if !valid(st, now) {
		st.Conditions = condition(st.Conditions, api.Condition{Type: api.CertificateReady, Reason: api.CertificateRequested, Message: "the certificate is being requested"}, now)
	}
	return st
}

// issued returns the status of a name with a new certificate, which is renewed when a third
// of its time is left.
func issued(n name, c pair, sealedKey string, now time.Time) api.CertificateStatus {
	end := c.leaf.NotAfter.UTC()
	renew := end.Add(-end.Sub(c.leaf.NotBefore) / 3).Truncate(time.Second)
	return api.CertificateStatus{HostName: n.host, Certificate: c.certificate, Key: sealedKey, ExpiresAt: at(end), NextAt: at(renew),
		Conditions: condition(n.status.Conditions, api.Condition{Type: api.CertificateReady, Status: true, Reason: api.CertificateIssued}, now)}
}

// failed returns the status of a name after a request that failed; attempts counts it.
func failed(n name, attempts int64, err error, now time.Time) api.CertificateStatus {
	st := n.status
	st.HostName, st.ChallengeCertificate, st.ChallengeKey, st.Attempts = n.host, "", "", attempts
	wait, reason, hint := retries.Wait(n.id, attempts), api.CertificateFailed,
		fmt.Sprintf("point %s in DNS to the portal of the cluster, let connections to port 443 of it reach the nodes, and check its CAA records", n.host)
	if limited, ok := rateLimit(err); ok {
		wait, reason, hint = max(wait, limited), api.CertificateRateLimited, "the certificate authority has refused more requests for now"
	}
	next := now.Add(wait).Truncate(time.Second)
	st.NextAt = at(next)
	st.Conditions = condition(st.Conditions, api.Condition{Type: api.CertificateReady, Status: valid(st, now), Reason: reason,
		Message: fmt.Sprintf("%s: %s; the next request is at %s UTC", reasonOf(err), hint, next.UTC().Format("2006-01-02 15:04"))}, now)
	return st
}

// rateLimit returns how long to wait if an error says that there were too many requests.
func rateLimit(err error) (time.Duration, bool) {
	var e *acme.Error
	if !errors.As(err, &e) {
		return 0, false
	}
	wait, limited := acme.RateLimit(e)
	if limited && wait <= 0 {
		wait = limitedWait
	}
	return wait, limited
}

func valid(st api.CertificateStatus, now time.Time) bool {
	return st.Certificate != "" && st.ExpiresAt != nil && now.Before(*st.ExpiresAt)
}

// condition returns conditions that consist of one, whose time is kept while its status is
// the same.
func condition(old []api.Condition, c api.Condition, now time.Time) []api.Condition {
	c.Since = now
	for _, was := range old {
		if was.Type == c.Type && was.Status == c.Status {
			c.Since = was.Since
		}
	}
	return []api.Condition{c}
}

// reasonOf returns the text of an error, which is the authority's in part: on one line, and
// limited.
func reasonOf(err error) string {
	text := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(err.Error(), ""), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}

func at(t time.Time) *time.Time { return &t }
