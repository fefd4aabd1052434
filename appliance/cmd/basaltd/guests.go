package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
)

const (
	// streamGuest carries a TCP connection to a guest of the called node. It begins with the
	// length of an error's JSON, 2 bytes, big-endian, and the error; the length is 0 if the
	// guest has answered.
	streamGuest = "guest"
	guestHeader = "Basalt-Guest"

	guestDialTime = 15 * time.Second
)

// guestAddress is the content of guestHeader.
type guestAddress struct {
	Instance api.InstanceID `json:"instance"`
	Port     uint16         `json:"port"`
}

// guestDialer connects the gateways to the cluster's guests in their networks.
type guestDialer struct{ n *node }

// openGuests lets other nodes connect to guests of this one.
func (n *node) openGuests() {
	n.guests = &guestDialer{n}
	if n.cluster != nil {
		n.cluster.server.HandleStream(streamGuest, n.guests.serve)
	}
}

// Dial implements sshgateway.Dialer and appgateway.Dialer.
func (d *guestDialer) Dial(ctx context.Context, node api.NodeID, instance api.InstanceID, port uint16) (net.Conn, error) {
	if d.n.cluster == nil || node == d.n.cluster.self.Node {
		return d.dialHere(ctx, instance, port)
	}
	raw, err := json.Marshal(guestAddress{instance, port})
	if err != nil {
		return nil, err
	}
	c, err := d.n.cluster.client.Stream(ctx, node, streamGuest, http.Header{guestHeader: {string(raw)}})
	if err != nil {
		return nil, fmt.Errorf("open a stream to node %s: %w", node, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	err = readGuestAnswer(c)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func readGuestAnswer(c io.Reader) error {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return fmt.Errorf("ask the node of the instance: %w", err)
	}
	n := binary.BigEndian.Uint16(size[:])
	if n == 0 {
		return nil
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(c, raw); err != nil {
		return fmt.Errorf("ask the node of the instance: %w", err)
	}
	e := new(api.Error)
	if err := json.Unmarshal(raw, e); err != nil {
		return fmt.Errorf("ask the node of the instance: %w", err)
	}
	return e
}

func writeGuestAnswer(c io.Writer, err error) error {
	var raw []byte
	if err != nil {
		if raw, err = json.Marshal(transport.Domain(err)); err != nil {
			return err
		}
	}
	if len(raw) > 1<<16-1 {
		raw = nil
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(raw))), raw...))
	return err
}

// dialHere connects to a port of a guest that this node runs.
func (d *guestDialer) dialHere(ctx context.Context, id api.InstanceID, port uint16) (net.Conn, error) {
	f := d.n.network
	if f == nil || f.service == nil {
		return nil, api.Errorf(api.CodeUnavailable, "networks are not available on this node")
	}
	o, err := d.n.store.Get(store.Stale(ctx), api.KindInstance, string(id))
	if err != nil {
		return nil, fmt.Errorf("read instance %s: %w", id, err)
	}
	in, err := api.Decode[api.Instance](o)
	if err != nil {
		return nil, err
	}
	network, at := guestAt(in.Assignment.Ports)
	if !at.IsValid() {
		return nil, api.Errorf(api.CodeState, "instance %s has no address in a network", in.Meta.Name)
	}
	return f.service.Dial(ctx, network, netip.AddrPortFrom(at, port)) //nolint:wrapcheck // the gateway names the instance
}

// guestAt returns the address by which the gateways reach an instance: its first IPv4
// address, or its first IPv6 address if it has no other. It is invalid if it has none.
func guestAt(ports []api.InstancePort) (network api.NetworkID, at netip.Addr) {
	for _, p := range ports {
		if a, err := netip.ParseAddr(cmp.Or(p.Address4, p.Address6)); err == nil && (!at.IsValid() || a.Is4() && at.Is6()) {
			network, at = p.Network, a
		}
	}
	return network, at
}

// serve connects the gateway of another node to a guest of this one.
func (d *guestDialer) serve(ctx context.Context, node api.NodeID, header http.Header, c net.Conn) {
	var to guestAddress
	if err := json.Unmarshal([]byte(header.Get(guestHeader)), &to); err != nil {
		d.n.log.Warn("read stream to guest failed", "node", node, "error", err)
		return
	}
	dialed, cancel := context.WithTimeout(ctx, guestDialTime)
	guest, err := d.dialHere(dialed, to.Instance, to.Port)
	cancel()
	if err != nil {
		d.n.log.Debug("connect to guest for another node failed", "node", node, "instance", to.Instance, "port", to.Port, "error", err)
		_ = writeGuestAnswer(c, api.Errorf(api.CodeUnavailable, "the instance is not reachable on port %d", to.Port).WithHint("it may still be booting"))
		return
	}
	defer guest.Close()
	stop := context.AfterFunc(ctx, func() { _ = guest.Close() })
	defer stop()
	if err := writeGuestAnswer(c, nil); err != nil {
		return
	}
	var both sync.WaitGroup
	half := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		if h, ok := to.(transport.HalfCloser); ok && err == nil {
			_ = h.CloseWrite()
			return
		}
		_, _ = to.Close(), from.Close()
	}
	both.Go(func() { half(guest, c) })
	both.Go(func() { half(c, guest) })
	both.Wait()
}
