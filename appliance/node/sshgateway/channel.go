package sshgateway

import (
	"errors"
	"slices"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Requests of a session that are carried (RFC 4254, section 6, and OpenSSH's
// PROTOCOL). Not among them: X11 and agents, for which a guest would open channels to
// the client.
var (
	ofClient = []string{"pty-req", "env", "shell", "exec", "subsystem", "window-change", "signal", "break", "eow@openssh.com"}
	ofGuest  = []string{"exit-status", "exit-signal", "xon-xoff", "eow@openssh.com"}
)

// session carries one between client and guest.
func (n *connection) session(asked ssh.NewChannel) {
	guest, err := n.signIn()
	if err != nil {
		c, requests, acceptErr := asked.Accept()
		if acceptErr == nil {
			tell(c, requests, err)
		}
		return
	}
	n.bridge(asked, guest, "session", nil)
}

// bridge opens a channel of the guest's and joins the two.
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

// join two channels until the guest has closed its own, or the client's is gone.
func (n *connection) join(near ssh.Channel, nearRequests <-chan *ssh.Request, far ssh.Channel, farRequests <-chan *ssh.Request) {
	var fromGuest, fromClient sync.WaitGroup
	fromClient.Go(func() {
		n.carry(far, near)
		_ = far.CloseWrite()
	})
	fromClient.Go(func() {
		pass(far, nearRequests, ofClient)
		_ = far.Close() // the client's is gone
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

// pass requests on to a channel, those that are allowed.
func pass(to ssh.Channel, from <-chan *ssh.Request, allowed []string) {
	for r := range from {
		ok := false
		if slices.Contains(allowed, r.Type) {
			ok, _ = to.SendRequest(r.Type, r.WantReply, r.Payload) // it has gone: refused
		}
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
	}
}
