package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

var portalKinds = []objects.Kind{objects.Of[api.PortalDomain]()}

// portalCerts are the certificates of the host names of resellers' portals. A key is opened
// when the first client asks for its name.
type portalCerts struct {
	open func(ctx context.Context, sealed string) (string, error)
	now  func() time.Time
	log  *slog.Logger

	mu     sync.Mutex // guards what follows
	names  map[string]string
	byName map[string]portalCert
}

// portalCert is a certificate; pair is nil until it was used.
type portalCert struct {
	id   string // of its PortalDomain
	spec api.PortalDomainSpec
	pair *tls.Certificate
}

func newPortalCerts(open func(ctx context.Context, sealed string) (string, error), log *slog.Logger) *portalCerts {
	return &portalCerts{open: open, now: time.Now, log: log, names: map[string]string{}, byName: map[string]portalCert{}}
}

// follow updates the certificates.
func (p *portalCerts) follow(update watchcache.Update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if update.All {
		clear(p.names)
		clear(p.byName)
	}
	for _, c := range update.Changes {
		if name, ok := p.names[c.ID]; ok {
			delete(p.names, c.ID)
			delete(p.byName, name)
		}
	}
	for _, c := range update.Changes { // a name may have passed from one organization to another
		if d, ok := c.Now.(api.PortalDomain); ok && d.Spec.Approved && d.Spec.Certificate != "" && d.Meta.DeletedAt == nil {
			p.names[c.ID], p.byName[d.Meta.Name] = d.Meta.Name, portalCert{id: c.ID, spec: d.Spec}
		}
	}
}

// get returns the certificate of the name that a client asks for; nil: there is none that is
// valid now.
func (p *portalCerts) get(ctx context.Context, server string) *tls.Certificate {
	name := api.HostName(server)
	p.mu.Lock()
	c, ok := p.byName[name]
	p.mu.Unlock()
	if !ok {
		return nil
	}
	if c.pair == nil {
		key, err := p.open(ctx, c.spec.Key)
		if err == nil {
			var pair tls.Certificate
			pair, err = tls.X509KeyPair([]byte(c.spec.Certificate), []byte(key))
			c.pair = &pair
		}
		if err != nil {
			p.log.Warn("open certificate of a portal failed, presenting the cluster's", "name", name, "error", err)
			return nil
		}
		p.keep(name, c)
	}
	if !p.now().Before(c.pair.Leaf.NotAfter) {
		return nil
	}
	return c.pair
}

// keep remembers the opened certificate, unless it was replaced in the meantime.
func (p *portalCerts) keep(name string, c portalCert) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now, ok := p.byName[name]; ok && now.id == c.id && now.spec.Certificate == c.spec.Certificate && now.spec.Key == c.spec.Key {
		p.byName[name] = c
	}
}

// beside adds the certificates to a configuration, whose own one is presented to clients
// that ask for any other name, or for none.
func (p *portalCerts) beside(c *tls.Config) *tls.Config {
	own := c.GetCertificate
	c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if cert := p.get(hello.Context(), hello.ServerName); cert != nil {
			return cert, nil
		}
		if own == nil {
			return nil, nil // the first of c.Certificates
		}
		return own(hello)
	}
	return c
}
