package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"github.com/basalt-gpu/basalt/api"
)

const (
	connectTime = 20 * time.Second // TCP, TLS, greeting and authentication
	sendTime    = time.Minute      // of one message
	// maxAnswers is how many bytes are read from a server on one connection: it answers
	// in short lines.
	maxAnswers = 256 << 10
	maxReason  = 300 // bytes of a server's answer that are kept
)

// account is what is needed to connect to the server.
type account struct {
	settings api.MailSettingsSpec
	password string
	roots    *x509.CertPool // nil means the system's
	connect  time.Duration
	send     time.Duration
}

// session is an authenticated connection to the mail server.
type session struct {
	client *gomail.Client
	conn   *limitedConn
	send   time.Duration
	ends   func() bool
}

// open connects and authenticates. Any failure is caused by the server or the settings.
func (a account) open(ctx context.Context) (*session, verdict) {
	s := &session{send: a.send}
	tlsConfig := &tls.Config{ServerName: a.settings.Server, MinVersion: tls.VersionTLS12, RootCAs: a.roots}
	options := []gomail.Option{gomail.WithPort(a.settings.Port), gomail.WithTimeout(a.connect), gomail.WithTLSConfig(tlsConfig), gomail.WithoutNoop(),
		gomail.WithHELO(domainOf(a.settings.Sender)), gomail.WithTLSPolicy(policies[a.settings.Security]),
		// go-mail sets no deadline before the greeting, and reads lines of unlimited length.
		gomail.WithDialContextFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
			raw, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			s.conn = &limitedConn{Conn: raw}
			s.conn.until(time.Now().Add(a.connect), maxAnswers)
			if a.settings.Security == api.MailTLS {
				return tls.Client(s.conn, tlsConfig), nil
			}
			return s.conn, nil
		})}
	if a.settings.User != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(a.settings.User), gomail.WithPassword(a.password))
	}
	client, err := gomail.NewClient(a.settings.Server, options...)
	if err != nil {
		return nil, verdict{err: reason("settings", err), server: true, notAttempted: true}
	}
	s.client = client
	// A connection that does not end with the context would delay the next leader.
	s.ends = context.AfterFunc(ctx, func() {
		if s.conn != nil {
			_ = s.conn.Close()
		}
	})
	if err := client.DialWithContext(ctx); err != nil {
		s.ends()
		if s.conn != nil {
			_ = s.conn.Close()
		}
		return nil, verdict{err: reason("connect to "+client.ServerAddr(), err), server: true, notAttempted: true}
	}
	return s, verdict{}
}

// policies maps the security settings to go-mail's. A connection that is TLS from the
// beginning uses no STARTTLS; "opportunistic" makes go-mail detect that.
var policies = map[api.MailSecurity]gomail.TLSPolicy{api.MailSTARTTLS: gomail.TLSMandatory, api.MailTLS: gomail.TLSOpportunistic, api.MailPlain: gomail.NoTLS}

// close ends the session, with a QUIT if the server responds within a second.
func (s *session) close() {
	s.conn.until(time.Now().Add(time.Second), maxAnswers)
	_ = s.client.Close() // the messages have been sent
	s.ends()
	_ = s.conn.Close()
}

// deliver sends one message to the server.
func (s *session) deliver(m *gomail.Msg) verdict {
	s.conn.until(time.Now().Add(s.send), maxAnswers)
	err := s.client.Send(m)
	if err == nil || m.IsDelivered() { // the error occurred after it was accepted
		return verdict{}
	}
	return verdictOf(m, err)
}

// verdictOf returns the verdict for an error of sending.
func verdictOf(m *gomail.Msg, err error) verdict {
	var e *gomail.SendError
	if !errors.As(err, &e) {
		if failed := m.SendError(); !errors.As(failed, &e) { // the connection failed before the dialog
			return verdict{err: reason("send", err), server: true, notAttempted: true}
		}
	}
	// go-mail's text also names recipient and message, which are stored separately.
	said, _, _ := strings.Cut(e.Error(), ", affected ")
	doing := e.Reason.String()
	v := verdict{err: reason(doing, explained{strings.TrimPrefix(strings.TrimPrefix(said, doing+": "), doing+": "), err})}
	code := e.ErrorCode()
	v.recipient, v.status = e.Reason == gomail.ErrSMTPRcptTo, e.EnhancedStatusCode()
	switch {
	case e.Reason == gomail.ErrSMTPMailFrom && code >= 500: // it rejects the sender, whoever the recipient is
		v.server, v.notAttempted = true, true
	case code == 421: // the server closes the connection (RFC 5321, section 3.8), possibly because of the message
		v.server = true
	case code >= 500:
		v.final = true
	case code >= 400:
	default: // the connection was lost, possibly because of the message
		v.server = true
	}
	return v
}

// reason returns an error for operators: the operation and its result in one short
// line.
func reason(doing string, err error) error {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, err.Error())
	if timeout := (net.Error)(nil); errors.As(err, &timeout) && timeout.Timeout() {
		text = "the server does not answer"
	}
	if errors.Is(err, errTooMuch) {
		text = errTooMuch.Error()
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
	return fmt.Errorf("%s: %s", doing, text)
}

// explained is an error with another text.
type explained struct {
	text string
	error
}

func (e explained) Error() string { return e.text }
func (e explained) Unwrap() error { return e.error }

func domainOf(address string) string {
	_, domain, _ := strings.Cut(address, "@")
	return domain
}

var errTooMuch = errors.New("the server's reply is too long")

// limitedConn ends a connection at a time that its user cannot extend, and after a
// number of bytes.
type limitedConn struct {
	net.Conn
	left int
	end  time.Time
}

func (c *limitedConn) until(end time.Time, bytes int) {
	c.end, c.left = end, bytes
	_ = c.Conn.SetDeadline(end) // it fails only on a closed connection
}

// SetDeadline, SetReadDeadline and SetWriteDeadline set the earlier of t and the
// connection's end.
func (c *limitedConn) SetDeadline(t time.Time) error     { return c.Conn.SetDeadline(c.earlier(t)) }
func (c *limitedConn) SetReadDeadline(t time.Time) error { return c.Conn.SetReadDeadline(c.earlier(t)) }
func (c *limitedConn) SetWriteDeadline(t time.Time) error {
	return c.Conn.SetWriteDeadline(c.earlier(t))
}

func (c *limitedConn) earlier(t time.Time) time.Time {
	if t.IsZero() || t.After(c.end) {
		return c.end
	}
	return t
}

func (c *limitedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooMuch
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
