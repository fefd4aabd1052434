package sshgateway

import (
	"errors"
	"slices"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Requests of a session that are forwarded (RFC 4254, section 6, and OpenSSH's
// PROTOCOL). X11 and agent forwarding are not among them, because for these a guest
// would open channels to the client.
var (
	ofClient = []string{"pty-req", "env", "shell", "exec", "subsystem", "window-change", "signal", "break", "eow@openssh.com"}
	ofGuest  = []string{"exit-status", "exit-signal", "xon-xoff", "eow@openssh.com"}
)

// session forwards a session between client and guest.
func (n *connection) session(asked ssh.NewChannel) {
	guest, err := n.signIn()
	if err != nil {
		c, requests, acceptErr := asked.Accept()
		if acceptErr == nil {
			writeReason(c, requests, err)
		}
		return
	}
	n.bridge(asked, guest, "session", nil)
}

// bridge opens a channel to the guest and joins the two.
func (n *connection) bridge(asked ssh.NewChannel, guest *ssh.Client, kind string, extra []byte) {
	far, farRequests, err := guest.OpenChannel(kind, extra)
	if err != nil {
		reason, text := ssh.ConnectionFailed, "the instance refused it"
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) {
			reason = refused.Reason
		}
		_ = asked.Reject(reason, text)
		return
	}
	near, nearRequests, err := asked.Accept()
	if err != nil {
		_ = far.Close()
		go ssh.DiscardRequests(farRequests)
		return
	}
	n.join(near, nearRequests, far, farRequests)
}

// join forwards data and requests between two channels until the guest has closed
// its own, or the client's is closed.
func (n *connection) join(near ssh.Channel, nearRequests <-chan *ssh.Request, far ssh.Channel, farRequests <-chan *ssh.Request) {
	var fromGuest, fromClient sync.WaitGroup
	fromClient.Go(func() {
		n.carry(far, near)
		_ = far.CloseWrite()
	})
	fromClient.Go(func() {
		pass(far, nearRequests, ofClient)
		_ = far.Close() // the client's channel is closed
	})
	var out sync.WaitGroup
	out.Go(func() { n.carry(near, far) })
	out.Go(func() { n.carry(near.Stderr(), far.Stderr()) })
	fromGuest.Go(func() {
		out.Wait()
		_ = near.CloseWrite() // RFC 4254, section 5.3: before the status, or after it
	})
	fromGuest.Go(func() { pass(near, farRequests, ofGuest) })
	fromGuest.Wait()
	_ = near.Close()
	fromClient.Wait()
}

// pass forwards the allowed requests to a channel, and refuses the others.
func pass(to ssh.Channel, from <-chan *ssh.Request, allowed []string) {
	for r := range from {
		ok := false
		if slices.Contains(allowed, r.Type) {
			ok, _ = to.SendRequest(r.Type, r.WantReply, r.Payload) // refused if the channel is closed
		}
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
	}
}
