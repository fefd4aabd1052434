//go:build basalt_fake

package main

import (
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/hypervisor/fake"
)

// Virtual machines in memory, which end with basaltd, are for tests of what is
// around them and for the portal's developers: go build -tags basalt_fake, and
// --libvirt fake:.
func init() {
	hypervisors["fake:"] = func() hypervisor.Driver { return fake.New(fake.Guest{}) }
}
