package sshgateway

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// direct is the payload of a direct-tcpip channel (RFC 4254, section 7.2).
type direct struct {
	Host       string
	Port       uint32
	Origin     string
	OriginPort uint32
}

// forward forwards a TCP connection to the instance. "localhost" is the guest's
// own, to which its sshd connects. The instance's name, ID or address means its
// interface in its network: this is what ssh -J requests, and it needs only
// the port of the guest.
func (n *connection) forward(asked ssh.NewChannel) {
	var d direct
	if ssh.Unmarshal(asked.ExtraData(), &d) != nil || d.Port == 0 || d.Port > 65535 {
		_ = asked.Reject(ssh.ConnectionFailed, "want a host and a port")
		return
	}
	switch {
	case isLoopback(d.Host):
		guest, err := n.signIn()
		if err != nil {
			_ = asked.Reject(ssh.ConnectionFailed, message(err))
			return
		}
		n.bridge(asked, guest, "direct-tcpip", asked.ExtraData())
	case n.itself(d.Host):
		n.direct(asked, uint16(d.Port))
	default:
		_ = asked.Reject(ssh.Prohibited, "the gateway forwards only to the instance itself and to its localhost")
	}
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && a.IsLoopback()
}

// itself reports whether the host is the instance.
func (n *connection) itself(host string) bool {
	if host == n.access.Name || host == string(n.access.Instance) || host == n.target.Instance || host == n.target.Project+"/"+n.target.Instance {
		return true
	}
	a, err := netip.ParseAddr(host)
	for _, own := range n.access.Addresses {
		if err == nil && a == own {
			return true
		}
	}
	return false
}

func (n *connection) direct(asked ssh.NewChannel, port uint16) {
	far, err := n.dial(port)
	if err != nil {
		_ = asked.Reject(ssh.ConnectionFailed, message(err))
		return
	}
	defer far.Close()
	near, requests, err := asked.Accept()
	if err != nil {
		return
	}
	defer near.Close()
	go func() {
		ssh.DiscardRequests(requests)
		_ = far.Close() // the client's channel is closed
	}()
	var both sync.WaitGroup
	both.Go(func() {
		n.carry(far, near)
		closeWrite(far)
	})
	both.Go(func() {
		n.carry(near, far)
		_ = near.CloseWrite()
	})
	both.Wait()
}

// closeWrite closes one direction, or both if the connection does not support that.
func closeWrite(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
		return
	}
	_ = c.(io.Closer).Close()
}
