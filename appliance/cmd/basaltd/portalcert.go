package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/certificates"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

var portalKinds = []objects.Kind{objects.Of[api.PortalDomain](), objects.As[api.StoredACMESettings](api.KindACMESettings)}

// portalCerts are the certificates of the host names of resellers' portals, and the one that was
// requested for the cluster's. A key is opened when the first client asks for its name.
type portalCerts struct {
	open func(ctx context.Context, sealed string) (string, error)
	// find returns the status of a host name whose challenge a certificate authority checks.
	find func(ctx context.Context, host string) (api.CertificateStatus, error)
	// ownFile means that the cluster's portal has a certificate file on this node.
	ownFile bool
	now     func() time.Time
	log     *slog.Logger

	mu     sync.Mutex // guards what follows
	names  map[string]string
	byName map[string]portalCert
}

// portalCert is the certificates of a name in the order of preference: one that was stored by
// its owner, and one that was requested.
type portalCert struct {
	id  string // of the object that has them
	all [2]keyPair
}

// keyPair is a certificate with its sealed key; pair is nil until it was used.
type keyPair struct {
	certificate, key string
	pair             *tls.Certificate
}

// certOf returns the certificates in an object, and the name that they are for; empty: none.
func (p *portalCerts) certOf(id string, o any) (name string, c portalCert) {
	switch d := o.(type) {
	case api.PortalDomain:
		if d.Spec.Approved && d.Meta.DeletedAt == nil {
			name, c.all[0] = d.Meta.Name, keyPair{certificate: d.Spec.Certificate, key: d.Spec.Key}
			c.all[1] = keyPair{certificate: d.Status.Certificate, key: d.Status.Key}
		}
	case api.StoredACMESettings:
		if !p.ownFile {
			name, c.all[1] = d.Status.HostName, keyPair{certificate: d.Status.Certificate, key: d.Status.Key}
		}
	}
	if c.all[0].certificate == "" && c.all[1].certificate == "" {
		name = ""
	}
	c.id = id
	return name, c
}

func newPortalCerts(store api.BrandingReader, open func(ctx context.Context, sealed string) (string, error), ownFile bool, log *slog.Logger) *portalCerts {
	find := func(ctx context.Context, host string) (api.CertificateStatus, error) {
		return certificates.StatusOf(ctx, store, host)
	}
	return &portalCerts{open: open, find: find, ownFile: ownFile, now: time.Now, log: log, names: map[string]string{}, byName: map[string]portalCert{}}
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
			if p.byName[name].id == c.ID {
				delete(p.byName, name)
			}
		}
	}
	for _, c := range update.Changes { // a name may have passed from one organization to another
		_, own := c.Now.(api.StoredACMESettings) // a name that became the cluster's is the cluster's
		if name, cert := p.certOf(c.ID, c.Now); name != "" && (own || p.byName[name].id == "") {
			p.names[c.ID], p.byName[name] = name, cert
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
	for i, k := range c.all {
		if k.certificate == "" {
			continue
		}
		if k.pair == nil {
			pair, err := p.opened(ctx, k)
			if err != nil {
				p.log.Warn("open certificate of a portal failed, presenting another", "name", name, "error", err)
				continue
			}
			k.pair = pair
			p.keep(name, c.id, i, k)
		}
		if p.now().Before(k.pair.Leaf.NotAfter) {
			return k.pair
		}
	}
	return nil
}

func (p *portalCerts) opened(ctx context.Context, k keyPair) (*tls.Certificate, error) {
	key, err := p.open(ctx, k.key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair([]byte(k.certificate), []byte(key))
	return &pair, err
}

// keep remembers an opened certificate, unless it was replaced in the meantime.
func (p *portalCerts) keep(name, id string, i int, k keyPair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now, ok := p.byName[name]; ok && now.id == id && now.all[i].certificate == k.certificate && now.all[i].key == k.key {
		now.all[i] = k
		p.byName[name] = now
	}
}

// challenge returns the configuration of a connection of a certificate authority; nil: it is
// another connection. Any node can answer: the challenge is read from the store.
func (p *portalCerts) challenge(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	const most = 10 * time.Second // without a leader, reads wait
	ctx, cancel := context.WithTimeout(hello.Context(), most)
	defer cancel()
	c, err := certificates.ChallengeConfig(hello, func(host string) (api.CertificateStatus, error) { return p.find(ctx, host) },
		func(sealed string) (string, error) { return p.open(ctx, sealed) })
	if err != nil {
		return nil, fmt.Errorf("answer a challenge for %.256q: %w", hello.ServerName, err)
	}
	return c, nil
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
	c.GetConfigForClient = p.challenge
	return c
}
