package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/node/limit"
)

const (
	// streamGuest carries a TCP connection to a guest of the called node. It begins with the
	// length of an error's JSON, 2 bytes, big-endian, and the error; the length is 0 if the
	// guest has answered.
	streamGuest = "guest"
	guestHeader = "Basalt-Guest"

	guestDialTime = 15 * time.Second

	// Streams to the guests of one node and to one guest. A node accepts 1,024 connections of
	// another one for everything: guests' users must leave enough for the cluster itself.
	maxGuestStreams    = 512
	maxStreamsOfGuest  = 128
	maxStreamsOfGuests = 1 << 20 // to all nodes: their number is the limit
)

// guestAddress is the content of guestHeader.
type guestAddress struct {
	Instance api.InstanceID `json:"instance"`
	Port     uint16         `json:"port"`
}

// guestDialer connects the gateways to the cluster's guests in their networks.
type guestDialer struct {
	self api.NodeID // empty: the node is alone
	log  *slog.Logger
	// here connects to a port of a guest of this node.
	here func(ctx context.Context, id api.InstanceID, port uint16) (net.Conn, error)
	// stream opens a stream to another node, which is a transport.HalfCloser.
	stream func(ctx context.Context, node api.NodeID, name string, header http.Header) (net.Conn, error)

	ofNode, ofGuest *limit.Counter // open streams
}

func newGuestDialer(log *slog.Logger) *guestDialer {
	return &guestDialer{log: log, ofNode: limit.NewCounter(maxGuestStreams, maxStreamsOfGuests), ofGuest: limit.NewCounter(maxStreamsOfGuest, maxStreamsOfGuests)}
}

// openGuests lets other nodes connect to guests of this one.
func (n *node) openGuests() {
	n.guests = newGuestDialer(n.log)
	n.guests.here = n.dialGuest
	if n.cluster != nil {
		n.guests.self, n.guests.stream = n.cluster.self.Node, n.cluster.client.Stream
		n.cluster.server.HandleStream(streamGuest, n.guests.serve)
	}
}

// Dial implements sshgateway.Dialer and appgateway.Dialer.
func (d *guestDialer) Dial(ctx context.Context, node api.NodeID, instance api.InstanceID, port uint16) (net.Conn, error) {
	if d.self == "" || node == d.self {
		return d.here(ctx, instance, port)
	}
	leave, err := d.enter(node, instance)
	if err != nil {
		return nil, err
	}
	c, err := d.dialThere(ctx, node, guestAddress{instance, port})
	if err != nil {
		leave()
		return nil, err
	}
	return &guestStream{c, leave}, nil
}

// enter counts a stream until leave is called.
func (d *guestDialer) enter(node api.NodeID, instance api.InstanceID) (leave func(), err error) {
	leaveGuest, ok := d.ofGuest.Enter(string(instance))
	if !ok {
		return nil, api.Errorf(api.CodeQuota, "%d connections to instance %s are open, which is the limit", maxStreamsOfGuest, instance)
	}
	leaveNode, ok := d.ofNode.Enter(string(node))
	if !ok {
		leaveGuest()
		return nil, api.Errorf(api.CodeQuota, "%d connections to instances of node %s are open, which is the limit", maxGuestStreams, node)
	}
	return func() { leaveGuest(); leaveNode() }, nil
}

// guestStream is a stream to a guest of another node.
type guestStream struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (s *guestStream) Close() error {
	s.leave()
	return s.Conn.Close()
}

// CloseWrite implements transport.HalfCloser.
func (s *guestStream) CloseWrite() error {
	if err := s.Conn.(transport.HalfCloser).CloseWrite(); err != nil {
		return fmt.Errorf("end of the stream to a guest: %w", err)
	}
	return nil
}

// dialThere connects to a port of a guest that another node runs.
func (d *guestDialer) dialThere(ctx context.Context, node api.NodeID, to guestAddress) (net.Conn, error) {
	raw, err := json.Marshal(to)
	if err != nil {
		return nil, err
	}
	c, err := d.stream(ctx, node, streamGuest, http.Header{guestHeader: {string(raw)}})
	if err != nil {
		return nil, fmt.Errorf("open a stream to node %s: %w", node, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	if err = readGuestAnswer(c); err == nil {
		err = transport.AllowPauses(c)
	}
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

// dialGuest connects to a port of a guest that this node runs.
func (n *node) dialGuest(ctx context.Context, id api.InstanceID, port uint16) (net.Conn, error) {
	f := n.network
	if f == nil || f.service == nil {
		return nil, api.Errorf(api.CodeUnavailable, "networks are not available on this node")
	}
	o, err := n.store.Get(store.Stale(ctx), api.KindInstance, string(id))
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
		d.log.Warn("read stream to guest failed", "node", node, "error", err)
		return
	}
	dialed, cancel := context.WithTimeout(ctx, guestDialTime)
	guest, err := d.here(dialed, to.Instance, to.Port)
	cancel()
	if err != nil {
		d.log.Debug("connect to guest for another node failed", "node", node, "instance", to.Instance, "port", to.Port, "error", err)
		_ = writeGuestAnswer(c, api.Errorf(api.CodeUnavailable, "the instance is not reachable on port %d", to.Port).WithHint("it may still be booting"))
		return
	}
	defer guest.Close()
	stop := context.AfterFunc(ctx, func() { _ = guest.Close() })
	defer stop()
	if err := errors.Join(transport.AllowPauses(c), writeGuestAnswer(c, nil)); err != nil {
		d.log.Debug("answer to the gateway of another node failed", "node", node, "instance", to.Instance, "error", err)
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
