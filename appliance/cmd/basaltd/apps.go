package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/node/appgateway"
)

// appService is the app gateway of this node.
type appService struct {
	*appgateway.Gateway
	n        *node
	domain   string
	listener net.Listener
	tls      *tls.Config
}

// openApps opens the app gateway's port if --app-listen is set.
func (n *node) openApps(c config) (err error) {
	if c.appListen == "" {
		return nil
	}
	if n.network == nil || n.network.guests == nil {
		return fmt.Errorf("--app-listen %s: the app gateway reaches instances in networks, and basaltd runs without --network ovn", c.appListen)
	}
	d := &appService{n: n, tls: pki.ForBrowsers("h2", "http/1.1")}
	ok := false
	if d.domain, ok = appgateway.ParseDomain(c.appDomain); !ok {
		return fmt.Errorf("--app-domain %q: want a domain of at least two labels, e.g. apps.example.com", c.appDomain)
	}
	if c.appCert == "" || c.appKey == "" {
		return fmt.Errorf("--app-listen %s: --app-cert and --app-key must name a certificate of *.%s and its key", c.appListen, d.domain)
	}
	cert, err := openCert(c.appCert, c.appKey, d.domain, n.log)
	if err != nil {
		return fmt.Errorf("--app-cert: %w", err)
	}
	d.tls.GetCertificate = cert.get
	if d.listener, err = listenAt(c, "app gateway", c.appListen, n.log); err != nil {
		return fmt.Errorf("--app-listen: %w", err)
	}
	n.closers = append(n.closers, func() error { _ = d.listener.Close(); return nil }) // closed already if Serve has run
	port := c.appPort
	if port == 0 {
		port = d.listener.Addr().(*net.TCPAddr).AddrPort().Port()
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.closers = append(n.closers, func() error { cancel(); return nil })
	d.Gateway = appgateway.New(ctx, appgateway.Options{Domain: d.domain, Port: port, Keys: appgateway.NewKeys(n.store, n.sealed), Directory: d, Dialer: n.guests, Log: n.log})
	n.apps = d
	return nil
}

func (d *appService) serve(ctx context.Context) error {
	return d.Serve(ctx, d.listener, d.tls, auth.BehindProxies(d.n.proxies, d.Gateway))
}

// Domain implements server.AppGateway.
func (d *appService) Domain() string { return d.domain }

// Admit implements appgateway.Directory.
func (d *appService) Admit(ctx context.Context, holder string, to api.InstanceID, from string) (appgateway.Access, error) {
	a, err := d.n.api.AdmitApp(ctx, holder, to, from)
	return accessOf(a), err
}

// AdmitToken implements appgateway.Directory.
func (d *appService) AdmitToken(ctx context.Context, token string, to api.InstanceID, from string) (appgateway.Access, error) {
	a, err := d.n.api.AdmitAppToken(ctx, token, to, from)
	return accessOf(a), err
}

func accessOf(a server.AppAccess) appgateway.Access {
	return appgateway.Access{Instance: api.InstanceID(a.Instance.Meta.ID), Name: a.Instance.Meta.Name, Node: a.Instance.Assignment.Node, Ticket: a}
}

// While implements appgateway.Directory.
func (d *appService) While(ctx context.Context, a appgateway.Access) (context.Context, context.CancelFunc, error) {
	return d.n.api.WhileApp(ctx, a.Ticket.(server.AppAccess))
}

// Entered implements appgateway.Directory.
func (d *appService) Entered(ctx context.Context, a appgateway.Access, from string) error {
	return d.n.api.RecordApp(ctx, a.Ticket.(server.AppAccess), from)
}
