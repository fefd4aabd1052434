package main

import (
	"github.com/basalt-gpu/basalt/appliance/controlplane/vatcheck"
)

// vatChecker returns the checker of VAT numbers for a term in which this node is the leader.
func (n *node) vatChecker(in term) *vatcheck.Checker {
	return vatcheck.New(vatcheck.Options{Store: hookTerm{in}, Service: vatcheck.VIES{Client: vatcheck.NewClient(n.urls)}, Log: n.log})
}
