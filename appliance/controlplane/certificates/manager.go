package certificates

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	stepEvery = time.Minute
	// requestTime limits one request, in which the authority connects to the name.
	requestTime = 5 * time.Minute
)

// Store is the required part of the cluster's state; writes are valid in the leader's term
// only.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
}

// Options configure a Manager.
type Options struct {
	Store Store
	// Seal encrypts a private key, and Open decrypts it.
	Seal, Open func(ctx context.Context, text string) (string, error)
	HTTP       *http.Client // to the certificate authority
	// OwnFile means that the cluster's portal has a certificate file on this node.
	OwnFile bool
	Log     *slog.Logger
	Now     func() time.Time // nil: the system's clock
}

// Manager requests and renews certificates while this node leads.
type Manager struct {
	o      Options
	paused time.Time // until when no certificate is requested
}

// New returns a Manager.
func New(o Options) *Manager {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Manager{o: o}
}

// Run requests certificates until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := m.Step(ctx); err != nil && ctx.Err() == nil {
			m.o.Log.Warn("request certificates failed, retrying", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(stepEvery):
		}
	}
}

// Step requests the certificate that is most due, if there is one.
func (m *Manager) Step(ctx context.Context) error {
	s, err := m.read(ctx)
	if err != nil {
		return err
	}
	now := m.o.Now().UTC()
	names := due(s, now)
	if len(names) == 0 || now.Before(m.paused) {
		return nil
	}
	n := names[0]
	attempts := n.status.Attempts + 1
	cert, err := m.request(ctx, s.Settings, n)
	if ctx.Err() != nil {
		return ctx.Err() // the next leader's; NextAt delays its request
	}
	if now = m.o.Now().UTC(); err != nil {
		m.o.Log.Warn("request a certificate failed", "name", n.host, "attempts", attempts, "error", err)
		if wait, limited := rateLimit(err); limited {
			m.paused = now.Add(wait)
		}
		return m.report(ctx, n, failed(n, attempts, err, now))
	}
	sealed, err := m.o.Seal(ctx, cert.key)
	if err != nil {
		return fmt.Errorf("encrypt the key of the certificate of %s: %w", n.host, err)
	}
	m.o.Log.Info("certificate issued", "name", n.host, "expires", cert.leaf.NotAfter)
	return m.report(ctx, n, issued(n, cert, sealed, now))
}

// request requests the certificate of a name, and stores the answers of its challenges.
func (m *Manager) request(ctx context.Context, s api.ACMESettingsSpec, n name) (pair, error) {
	text, err := m.o.Open(ctx, s.AccountKey)
	if err != nil {
		return pair{}, fmt.Errorf("decrypt the key of the account: %w", err)
	}
	key, err := signer(text)
	if err != nil {
		return pair{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	a := account{directory: s.DirectoryURL, email: s.Email, key: key, http: m.o.HTTP}
	return a.request(ctx, n.host, func(challenge pair) error {
		sealed, err := m.o.Seal(ctx, challenge.key)
		if err != nil {
			return fmt.Errorf("encrypt the key of the challenge: %w", err)
		}
		return m.report(ctx, n, requested(n, challenge.certificate, sealed, m.o.Now().UTC()))
	}, m.o.Now())
}

func (m *Manager) report(ctx context.Context, n name, st api.CertificateStatus) error {
	_, err := m.o.Store.Apply(ctx, api.Batch{At: m.o.Now().UTC(), Commands: []api.Command{
		{Op: api.OpReport, Kind: n.kind, ID: n.id, Expect: api.AnyRevision, Data: api.Encode(st)}}})
	if err != nil {
		return fmt.Errorf("write the certificate of %s: %w", n.host, err)
	}
	return nil
}

// read reads what decides on requests. While they are disabled, nothing else is read.
func (m *Manager) read(ctx context.Context) (State, error) {
	settings, err := api.Settings[api.StoredACMESettings](ctx, m.o.Store, api.KindACMESettings, api.ACMESettingsID)
	s := State{Settings: settings.Spec, OwnFile: m.o.OwnFile}
	if err != nil || !s.Settings.Enabled {
		return s, err
	}
	portal, err := api.Settings[api.StoredACMESettings](ctx, m.o.Store, api.KindACMESettings, api.ACMECertificateID)
	if err != nil {
		return s, err
	}
	mail, err := api.Settings[api.StoredMailSettings](ctx, m.o.Store, api.KindMailSettings, api.MailSettingsID)
	if err != nil {
		return s, err
	}
	s.Portal, s.PortalURL = portal.Status, mail.Spec.PortalURL
	s.Domains, err = api.All[api.PortalDomain](ctx, m.o.Store, api.ListQuery{Kind: api.KindPortalDomain})
	return s, err
}

// StatusOf returns the certificate status of a host name: the address of the cluster's portal,
// or an approved name of a reseller; the zero value for any other.
func StatusOf(ctx context.Context, r api.BrandingReader, host string) (api.CertificateStatus, error) {
	portal, err := api.Settings[api.StoredACMESettings](ctx, r, api.KindACMESettings, api.ACMECertificateID)
	if err != nil || portal.Status.HostName == host {
		return portal.Status, err
	}
	d, ok, err := api.PortalDomainFor(ctx, r, host)
	if err != nil || !ok {
		return api.CertificateStatus{}, err
	}
	return d.Status, nil
}
