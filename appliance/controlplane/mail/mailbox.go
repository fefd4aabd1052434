package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/basalt-gpu/basalt/api"
)

const (
	// visitTime and visitBytes limit one connection to the mailbox.
	visitTime  = 2 * time.Minute
	visitBytes = 32 << 20
	perVisit   = 50 // messages
	// maxReturned is how many bytes of a message are read. Reports come first in it, and
	// the returned message, which may be long, last (RFC 6522, section 3).
	maxReturned = 256 << 10
)

// mailboxAccount is what is needed to read a mailbox.
type mailboxAccount struct {
	settings api.MailBouncesSpec
	password string
	roots    *x509.CertPool // nil means the system's
}

// mailbox is a connection to an IMAP server (RFC 9051) with an opened mailbox, which is
// only read: messages stay as they are, also unseen.
type mailbox struct {
	client   *imapclient.Client
	validity uint32 // of the UIDs: they are those of other messages if it changes
	end      func()
}

// open connects, signs in and opens the mailbox.
func (a mailboxAccount) open(ctx context.Context) (*mailbox, error) {
	address := net.JoinHostPort(a.settings.Server, strconv.Itoa(a.settings.Port))
	dialer := net.Dialer{Timeout: connectTime}
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, reason("connect to "+address, err)
	}
	conn := &limitedConn{Conn: raw}
	conn.until(time.Now().Add(visitTime), visitBytes)
	// A connection that does not end with the context would delay the next leader.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	m := &mailbox{end: func() { stop(); _ = conn.Close() }}
	if err := m.signIn(a, conn); err != nil {
		m.end()
		return nil, err
	}
	return m, nil
}

func (m *mailbox) signIn(a mailboxAccount, conn *limitedConn) (err error) {
	options := &imapclient.Options{TLSConfig: &tls.Config{ServerName: a.settings.Server, MinVersion: tls.VersionTLS12, RootCAs: a.roots}}
	if a.settings.Security == api.MailSTARTTLS {
		if m.client, err = imapclient.NewStartTLS(conn, options); err != nil {
			return reason("STARTTLS", err)
		}
	} else {
		m.client = imapclient.New(tls.Client(conn, options.TLSConfig), options)
	}
	if err := m.client.WaitGreeting(); err != nil {
		return reason("connect", err)
	}
	if err := m.client.Login(a.settings.User, a.password).Wait(); err != nil {
		return reason("sign in as "+a.settings.User, err)
	}
	box, err := m.client.Select(a.settings.Mailbox, &imap.SelectOptions{ReadOnly: true}).Wait()
	if err != nil {
		return reason("open mailbox "+a.settings.Mailbox, err)
	}
	m.validity = box.UIDValidity
	return nil
}

// close ends the session.
func (m *mailbox) close() {
	_ = m.client.Logout().Wait() // everything was read
	m.end()
}

// after returns the UIDs of at most perVisit messages that have arrived since a day, the
// lowest beyond uid.
func (m *mailbox) after(uid uint32, since time.Time) ([]imap.UID, error) {
	found, err := m.client.UIDSearch(&imap.SearchCriteria{Since: since}, nil).Wait()
	if err != nil {
		return nil, reason("search", err)
	}
	set, _ := found.All.(imap.UIDSet) // nil if there are none
	return lowest(set, imap.UID(uid), perVisit), nil
}

// lowest returns the lowest n UIDs of a set beyond one. The set may be one of billions.
func lowest(set imap.UIDSet, beyond imap.UID, n int) (uids []imap.UID) {
	set = slices.Clone(set)
	slices.SortFunc(set, func(a, b imap.UIDRange) int { return cmp.Compare(a.Start, b.Start) })
	for _, r := range set {
		for at := uint64(max(r.Start, beyond+1)); at <= uint64(r.Stop) && len(uids) < n; at++ {
			uids, beyond = append(uids, imap.UID(at)), imap.UID(at)
		}
	}
	return uids
}

// read returns the first bytes of a message; nil if it is no longer there.
func (m *mailbox) read(uid imap.UID) ([]byte, error) {
	body := &imap.FetchItemBodySection{Peek: true, Partial: &imap.SectionPartial{Size: maxReturned}}
	found, err := m.client.Fetch(imap.UIDSetNum(uid), &imap.FetchOptions{UID: true, BodySection: []*imap.FetchItemBodySection{body}}).Collect()
	if err != nil {
		return nil, reason(fmt.Sprintf("read message %d", uid), err)
	}
	for _, m := range found {
		if m.UID == uid && len(m.BodySection) > 0 {
			return m.BodySection[0].Bytes, nil
		}
	}
	return nil, nil
}
