package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/cluster/membership"
	"github.com/basalt-gpu/basalt/appliance/node/listen"
)

// clustered reports whether the node may belong to a cluster of several.
func (c config) clustered() bool { return len(c.peerListen) > 0 }

// selfOf returns this node as it is presented to the other members.
func selfOf(c config, id api.NodeID) (membership.Self, error) {
	self := membership.Self{Node: id, Name: c.nodeName, Version: version, PeerAddresses: c.peerListen}
	for _, a := range c.peerListen {
		host, _, err := net.SplitHostPort(a)
		if err != nil {
			return self, fmt.Errorf("--peer-listen %s: want HOST:PORT", a)
		}
		if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
			return self, fmt.Errorf("--peer-listen %s: want an address of this node that other nodes can reach", a)
		}
	}
	host, port, err := net.SplitHostPort(c.listen)
	if err != nil {
		return self, fmt.Errorf("--listen %s: want HOST:PORT", c.listen)
	}
	_, _, byRole := listen.ParseRole(c.listen)
	if ip := net.ParseIP(host); byRole || host == "" || ip != nil && ip.IsUnspecified() {
		host, _, _ = net.SplitHostPort(c.peerListen[0])
	}
	self.APIAddress = net.JoinHostPort(host, port)
	return self, nil
}

// newIdentity removes the ID that this node had in a cluster that it has left, and renames the
// state of that cluster.
func newIdentity(c config) error {
	for _, name := range []string{"store", "cluster"} {
		path := filepath.Join(c.data, name)
		if err := os.RemoveAll(path + ".left"); err != nil {
			return err
		}
		if err := os.Rename(path, path+".left"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(filepath.Join(c.data, "node-id")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return atomicfile.Sync(c.data)
}
