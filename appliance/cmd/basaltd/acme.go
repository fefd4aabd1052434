package main

import (
	"time"

	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/appliance/controlplane/certificates"
)

// certificates returns the manager of requested certificates for a term in which this node is
// the leader.
func (n *node) certificates(in term) *certificates.Manager {
	const answer, wait = 1 << 20, 30 * time.Second
	return certificates.New(certificates.Options{Store: hookTerm{in}, Seal: n.sealed.Seal, Open: n.sealed.Open, OwnFile: n.portals.ownFile, Log: n.log,
		HTTP: outbound.NewClient(outbound.Options{Policy: n.urls, MaxBody: answer, Connect: 10 * time.Second, Header: wait, Silence: wait, Total: time.Minute, Keep: true})})
}
