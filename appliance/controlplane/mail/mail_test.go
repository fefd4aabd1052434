package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// fixture is a mail test's store, clock and settings.
type fixture struct {
	*testing.T
	store    *memstore.Store
	settings api.MailSettingsSpec

	mu  sync.Mutex // guards now
	now time.Time
}

func newFixture(t *testing.T) *fixture {
	return &fixture{T: t, store: memstore.New(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		settings: api.MailSettings{Enabled: true, Server: "127.0.0.1", Security: api.MailPlain, Sender: "cloud@example.com", PortalURL: "https://cloud.example.com", PerMinute: 6000}.Spec()}
}

func (h *fixture) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// wait advances the virtual clock at once.
func (h *fixture) wait(_ context.Context, d time.Duration) {
	h.mu.Lock()
	h.now = h.now.Add(d)
	h.mu.Unlock()
	time.Sleep(50 * time.Microsecond) // so that virtual time does not run ahead of the server
}

func (h *fixture) apply(cmds ...api.Command) {
	h.Helper()
	if _, err := h.store.Apply(h.Context(), api.Batch{At: h.clock(), Commands: cmds}); err != nil {
		h.Fatal(err)
	}
}

// configure writes the settings, with the server at an address.
func (h *fixture) configure(at net.Addr, change func(*api.MailSettingsSpec)) {
	h.Helper()
	_, port, _ := net.SplitHostPort(at.String())
	h.settings.Port, _ = strconv.Atoi(port)
	if change != nil {
		change(&h.settings)
	}
	if err := api.ValidateMailSettings(h.settings); err != nil {
		h.Fatal(err)
	}
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindMailSettings, ID: api.MailSettingsID, Name: "mail", Expect: api.AnyRevision, Data: api.Encode(h.settings)},
		api.Command{Op: api.OpPutSpec, Kind: api.KindMailSettings, ID: api.MailStatusID, Name: "mail-status", Expect: api.AnyRevision, Data: api.Encode(struct{}{})})
}

func (h *fixture) queue(id string, s api.MailMessageSpec) { h.Helper(); h.apply(api.QueueMail(id, s)) }

func (h *fixture) message(id string) api.MailMessage {
	h.Helper()
	o, err := h.store.Get(context.Background(), api.KindMailMessage, id)
	if err != nil {
		h.Fatal(err)
	}
	m, err := api.Decode[api.MailMessage](o)
	if err != nil {
		h.Fatal(err)
	}
	return m
}

func (h *fixture) status() api.MailStatus {
	h.Helper()
	o, err := h.store.Get(context.Background(), api.KindMailSettings, api.MailStatusID)
	if err != nil {
		h.Fatal(err)
	}
	m, err := api.Decode[api.StoredMailSettings](o)
	if err != nil {
		h.Fatal(err)
	}
	return m.Status
}

func (h *fixture) until(what string, ok func() bool) {
	h.Helper()
	patience.Until(h, time.Minute, what, ok)
}

// run runs a mailer until the returned function is called.
func (h *fixture) run(s Store, change func(*Options)) (stop func()) {
	o := Options{Store: s, Now: h.clock, Wait: h.wait, Look: time.Second, Connect: time.Minute, Send: time.Minute}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(h.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = New(o).Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	h.Cleanup(stop)
	return stop
}

// post is emersion's SMTP server, which records the messages that it accepted.
type post struct {
	server *smtp.Server
	at     net.Addr

	mu   sync.Mutex // guards the fields below
	got  []delivery
	mail func(from string) error
	rcpt func(to string) error
	data func(n int) error // of the nth message, after it was read
	auth string            // required user and password
	seen int
}

type delivery struct{ from, to, raw string }

func (p *post) taken() []delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

func newPost(t *testing.T, change func(*post)) *post {
	p := &post{}
	p.server = smtp.NewServer(p)
	p.server.Domain, p.server.AllowInsecureAuth = "mail.test", true
	p.server.ErrorLog = quiet{}
	if change != nil {
		change(p)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.at = l.Addr()
	go func() { _ = p.server.Serve(l) }()
	t.Cleanup(func() { _ = p.server.Close() })
	return p
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

// NewSession implements smtp.Backend.
func (p *post) NewSession(*smtp.Conn) (smtp.Session, error) {
	s := &postSession{p: p}
	if p.auth != "" {
		return &authSession{s}, nil
	}
	return s, nil
}

type postSession struct {
	p        *post
	from, to string
	known    bool
}

func (s *postSession) Reset()        {}
func (s *postSession) Logout() error { return nil }

func (s *postSession) Mail(from string, _ *smtp.MailOptions) error {
	if s.p.auth != "" && !s.known {
		return &smtp.SMTPError{Code: 530, Message: "sign in first"}
	}
	s.from = from
	if s.p.mail != nil {
		return s.p.mail(from)
	}
	return nil
}

func (s *postSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	if s.p.rcpt != nil {
		return s.p.rcpt(to)
	}
	return nil
}

func (s *postSession) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.seen++
	if s.p.data != nil {
		if err := s.p.data(s.p.seen); err != nil {
			return err
		}
	}
	s.p.got = append(s.p.got, delivery{s.from, s.to, string(raw)})
	return nil
}

type authSession struct{ *postSession }

func (s *authSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *authSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user+":"+password != s.p.auth {
			return errors.New("wrong")
		}
		s.known = true
		return nil
	}), nil
}

func refuses(code int, text string) error { return &smtp.SMTPError{Code: code, Message: text} }

// A message goes through each kind of connection, once, with the right content.
func TestMessageArrives(t *testing.T) {
	cert, roots := testCertificate(t)
	for _, c := range []struct {
		security api.MailSecurity
		auth     string
	}{{api.MailPlain, ""}, {api.MailSTARTTLS, ""}, {api.MailSTARTTLS, "basalt:geheim"}, {api.MailTLS, "basalt:geheim"}, {api.MailTLS, ""}} {
		t.Run(string(c.security)+" "+c.auth, func(t *testing.T) {
			h := newFixture(t)
			p := newPost(t, func(p *post) {
				p.auth = c.auth
				if c.security != api.MailPlain {
					p.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
					p.server.AllowInsecureAuth = false
				}
			})
			if c.security == api.MailTLS {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				p.at = l.Addr()
				go func() { _ = p.server.Serve(tls.NewListener(l, p.server.TLSConfig)) }()
			}
			h.configure(p.at, func(s *api.MailSettingsSpec) {
				s.Security = c.security
				s.User, s.Password, _ = strings.Cut(c.auth, ":")
			})
			h.queue("mail-1", api.MailMessageSpec{Type: api.MailTypePasswordReset, To: "ann@example.com", User: "usr-1", Secret: "bslt_usr-1_x", Language: api.MailGerman})
			h.run(h.store, func(o *Options) { o.Roots = roots })
			h.until("mail-1 is sent", func() bool { return h.message("mail-1").Status.State == api.MailSent })
			m := h.message("mail-1")
			if m.Spec.Secret != "" || m.Status.Attempts != 0 || m.Status.LastError != "" || m.Status.MessageID != "mail-1@example.com" {
				t.Errorf("message = %+v, want no secret and no failed attempts", m)
			}
			if st := h.status(); st.Sent != 1 || st.Failed != 0 || st.Attempts != 0 {
				t.Errorf("status = %+v, want one sent", st)
			}
			got := p.taken()
			if len(got) != 1 || got[0].from != "cloud@example.com" || got[0].to != "ann@example.com" {
				t.Fatalf("messages at the server = %q, want one", got)
			}
			parsed := parse(t, got[0].raw)
			if parsed.Header.Get("Message-Id") != "<mail-1@example.com>" {
				t.Errorf("Message-ID = %q, want <mail-1@example.com>", parsed.Header.Get("Message-Id"))
			}
			for _, part := range parsed.parts {
				if !strings.Contains(part, "https://cloud.example.com/#/password?token=bslt_usr-1_x") || !strings.Contains(part, "neues Passwort für ann@example.com") {
					t.Errorf("part =\n%s\nwant the link and the German text", part)
				}
			}
		})
	}
}

// The server's response determines the outcome of a message, and of those after it.
func TestServerRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*post)
		state   api.MailState // of the first message, after the second was sent or the pause for the server began
		reason  string
		blocked bool // the server is tried again before the second message
	}{
		{"recipient for good", func(p *post) {
			p.rcpt = func(to string) error {
				if to == "ann@example.com" {
					return refuses(550, "no such user")
				}
				return nil
			}
		}, api.MailFailed, "no such user", false},
		{"recipient for now", func(p *post) {
			p.rcpt = func(to string) error {
				if to == "ann@example.com" {
					return refuses(450, "greylisted")
				}
				return nil
			}
		}, api.MailWaiting, "greylisted", false},
		{"content for good", func(p *post) {
			p.data = func(n int) error {
				if n == 1 {
					return refuses(554, "looks like spam")
				}
				return nil
			}
		}, api.MailFailed, "looks like spam", false},
		{"sender", func(p *post) { p.mail = func(string) error { return refuses(553, "not your address") } }, api.MailWaiting, "not your address", true},
		{"goes away", func(p *post) { p.rcpt = func(string) error { return refuses(421, "closing down") } }, api.MailWaiting, "closing down", true},
		{"wrong password", func(p *post) {
			p.auth = "basalt:other"
			cert, _ := testCertificate(t)
			p.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
		}, api.MailWaiting, "AUTH failed", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newFixture(t)
			_, roots := testCertificate(t)
			p := newPost(t, c.change)
			h.configure(p.at, func(s *api.MailSettingsSpec) {
				if p.auth != "" {
					s.User, s.Password, s.Security = "basalt", "geheim", api.MailSTARTTLS
				}
			})
			h.queue("mail-1", api.MailMessageSpec{Type: api.MailTypeTest, To: "ann@example.com"})
			h.queue("mail-2", api.MailMessageSpec{Type: api.MailTypeTest, To: "ben@example.com"})
			h.run(h.store, func(o *Options) { o.Roots = roots })
			if c.blocked {
				h.until("the server has failed three times", func() bool { return h.status().Attempts >= 3 })
				if st := h.status(); !strings.Contains(st.LastError, c.reason) || st.NextAt == nil {
					t.Errorf("status = %+v, want %q and a next attempt", st, c.reason)
				}
				if m := h.message("mail-2"); m.Done() {
					t.Errorf("second message = %+v, want it waiting", m.Status)
				}
			} else {
				h.until("mail-2 is sent", func() bool { return h.message("mail-2").Status.State == api.MailSent })
				if st := h.message("mail-1").Status; !strings.Contains(st.LastError, c.reason) {
					t.Errorf("first message = %+v, want %q", st, c.reason)
				}
			}
			if m := h.message("mail-1"); m.Status.State != c.state && (c.state != api.MailWaiting || m.Status.State != "") {
				t.Errorf("first message = %+v, want %s", m.Status, c.state)
			}
		})
	}
}

// A server that hangs, disconnects or never ends a response delays messages and blocks
// none: each is sent when the server works again.
func TestServerMisbehaves(t *testing.T) {
	greet := "220 hello\r\n"
	ehlo := "250-hello\r\n250 8BITMIME\r\n"
	for name, says := range map[string][]string{
		"no greeting":            {},
		"hangs after EHLO":       {greet},
		"hangs before recipient": {greet, ehlo, "250 ok\r\n"},
		"hangs in DATA":          {greet, ehlo, "250 ok\r\n", "250 ok\r\n"},
		"hangs after DATA":       {greet, ehlo, "250 ok\r\n", "250 ok\r\n", "354 go on\r\n"},
		"no SMTP":                {"HTTP/1.1 400 Bad Request\r\n\r\n"},
		"endless line":           {"220 " + strings.Repeat("x", 2*maxAnswers)},
		"endless lines":          {greet, strings.Repeat("250-x\r\n", maxAnswers/4)},
		"control characters":     {"554 \x1b[31m\x00\xff no\r\n"},
		"empty answer":           {greet, "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFixture(t)
			bad := newFakeServer(t, says)
			h.configure(bad, nil)
			h.queue("mail-1", api.MailMessageSpec{Type: api.MailTypeTest, To: "ann@example.com"})
			h.run(h.store, func(o *Options) { o.Connect, o.Send = 100*time.Millisecond, 100*time.Millisecond })
			h.until("two attempts fail", func() bool { return h.status().Attempts >= 2 })
			if st := h.status(); len(st.LastError) > 400 || strings.ContainsAny(st.LastError, "\x1b\x00\r\n") {
				t.Errorf("last error = %q, want a short text without control characters", st.LastError)
			}
			if m := h.message("mail-1"); m.Status.State == api.MailFailed {
				t.Fatalf("message after a few attempts = %+v, want it waiting", m.Status)
			}
			good := newPost(t, nil)
			h.configure(good.at, nil)
			h.until("mail-1 is sent", func() bool { return h.message("mail-1").Status.State == api.MailSent })
			if n := len(good.taken()); n != 1 {
				t.Errorf("messages at the good server = %d, want 1", n)
			}
		})
	}
}

// newFakeServer starts a server that sends lines, one after each that it receives, and then
// nothing.
func newFakeServer(t *testing.T, says []string) net.Addr {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				received := make([]byte, 4096)
				for _, line := range says {
					if _, err := io.WriteString(c, line); err != nil {
						return
					}
					if _, err := c.Read(received); err != nil {
						return
					}
				}
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return l.Addr()
}

// A server that disconnects at one message does not block the others, and a message
// that has waited for a day fails.
func TestCutOffInTheMiddle(t *testing.T) {
	h := newFixture(t)
	p := newPost(t, func(x *post) {
		x.rcpt = func(to string) error {
			if to == "ann@example.com" {
				panic("cut off") // go-smtp responds with 421 and closes the connection
			}
			return nil
		}
	})
	h.configure(p.at, nil)
	h.queue("mail-1", api.MailMessageSpec{Type: api.MailTypeTest, To: "ann@example.com"})
	h.queue("mail-2", api.MailMessageSpec{Type: api.MailTypeInvitation, To: "ben@example.com"})
	h.run(h.store, func(o *Options) { o.Look = 5 * time.Minute })
	h.until("mail-2 is sent", func() bool { return h.message("mail-2").Status.State == api.MailSent })
	h.until("mail-1 fails", func() bool { return h.message("mail-1").Status.State == api.MailFailed })
	m := h.message("mail-1")
	if age := m.Status.DoneAt.Sub(m.Meta.CreatedAt); age < 24*time.Hour || age > 25*time.Hour {
		t.Errorf("the message failed after %s, want a day", age)
	}
	if m.Status.Attempts < 10 || m.Status.Attempts > 60 {
		t.Errorf("attempts within a day = %d, want 10 to 60", m.Status.Attempts)
	}
	if st := h.status(); st.Failed != 1 || st.FailedAt == nil {
		t.Errorf("status = %+v, want one failed message", st)
	}
}

// flaky is a store whose writes fail, as when leadership is lost.
type flaky struct {
	*memstore.Store
	fail func() bool
}

func (f flaky) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if f.fail() {
		return nil, errors.New("this node leads no more")
	}
	return f.Store.Apply(ctx, b)
}

// If the leader is killed after the server accepted a message, and before that is
// written, the next one sends it again, with the same Message-ID.
func TestKilledBetweenSendAndStatus(t *testing.T) {
	h := newFixture(t)
	p := newPost(t, nil)
	h.configure(p.at, nil)
	h.queue("mail-1", api.MailMessageSpec{Type: api.MailTypeTest, To: "ann@example.com"})
	stop := h.run(flaky{h.store, func() bool { return true }}, nil)
	h.until("a message arrives", func() bool { return len(p.taken()) >= 1 })
	stop()
	if m := h.message("mail-1"); m.Done() {
		t.Fatalf("message = %+v, want it waiting", m.Status)
	}
	before := len(p.taken())
	h.run(h.store, nil)
	h.until("mail-1 is recorded as sent", func() bool { return h.message("mail-1").Status.State == api.MailSent })
	got := p.taken()
	if len(got) != before+1 {
		t.Fatalf("messages = %d after %d, want one more", len(got), before)
	}
	for _, d := range got {
		if d.raw != got[0].raw && parse(t, d.raw).Header.Get("Message-Id") != parse(t, got[0].raw).Header.Get("Message-Id") {
			t.Errorf("messages have different IDs:\n%s\n%s", d.raw, got[0].raw)
		}
	}
}

// A message for an address without a user is never sent, and no message is while mail
// is disabled.
func TestNotSent(t *testing.T) {
	h := newFixture(t)
	p := newPost(t, nil)
	h.configure(p.at, func(s *api.MailSettingsSpec) { s.Enabled = false })
	h.queue("mail-1", api.MailMessageSpec{Type: api.MailTypePasswordReset, To: "nobody@example.com", Secret: "x"})
	h.queue("mail-2", api.MailMessageSpec{Type: api.MailTypeTest, To: "ann@example.com"})
	m := New(Options{Store: h.store, Now: h.clock, Wait: h.wait})
	if next, err := m.step(t.Context()); err != nil || !next.IsZero() {
		t.Errorf("step while mail is disabled = %v, %v; want no next time", next, err)
	}
	h.configure(p.at, func(s *api.MailSettingsSpec) { s.Enabled = true })
	h.run(h.store, nil)
	h.until("mail-2 is sent", func() bool { return h.message("mail-2").Status.State == api.MailSent })
	if _, err := h.store.Get(t.Context(), api.KindMailMessage, "mail-1"); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("get the message for an address without a user: %v, want code %s", err, api.CodeNotFound)
	}
	if got := p.taken(); len(got) != 1 || got[0].to != "ann@example.com" {
		t.Errorf("messages at the server = %q, want one to ann@example.com", got)
	}
}

// No more messages are sent per minute than the settings allow.
func TestPace(t *testing.T) {
	h := newFixture(t)
	p := newPost(t, nil)
	h.configure(p.at, func(s *api.MailSettingsSpec) { s.PerMinute = 6 })
	began := h.clock()
	for n := range 30 {
		h.queue(fmt.Sprint("mail-", n), api.MailMessageSpec{Type: api.MailTypeTest, To: "ann@example.com"})
	}
	h.run(h.store, nil)
	h.until("all are sent", func() bool { return len(p.taken()) == 30 })
	if took := h.clock().Sub(began); took < 29*10*time.Second {
		t.Errorf("30 messages took %s, want at least %s", took, 290*time.Second)
	}
}

// Finished messages are removed after a while, and the oldest if there are too many.
func TestSorted(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { x := now.Add(d); return &x }
	message := func(id string, typ api.MailType, st api.MailMessageStatus) api.MailMessage {
		return api.MailMessage{Meta: api.Meta{ID: id, CreatedAt: now.Add(-time.Hour)}, Spec: api.MailMessageSpec{Type: typ, User: "usr-1"}, Status: st}
	}
	old := message("old", api.MailTypeTest, api.MailMessageStatus{})
	old.Meta.CreatedAt = now.Add(-24 * time.Hour)
	b := sorted([]api.MailMessage{
		message("invoice", api.MailTypeInvoice, api.MailMessageStatus{}),
		message("reset", api.MailTypePasswordReset, api.MailMessageStatus{}),
		message("later", api.MailTypeTest, api.MailMessageStatus{NextAt: at(time.Minute)}),
		message("sent", api.MailTypeTest, api.MailMessageStatus{State: api.MailSent, DoneAt: at(-time.Hour)}),
		message("sent-long-ago", api.MailTypeTest, api.MailMessageStatus{State: api.MailSent, DoneAt: at(-keepSent)}),
		message("failed", api.MailTypeTest, api.MailMessageStatus{State: api.MailFailed, DoneAt: at(-keepSent)}),
		old,
	}, keepSent, now)
	ids := func(ms []api.MailMessage) (out []string) {
		for _, m := range ms {
			out = append(out, m.Meta.ID)
		}
		return out
	}
	if got := ids(b.due); !slices.Equal(got, []string{"reset", "invoice"}) {
		t.Errorf("due messages = %q, want reset and invoice", got)
	}
	if got := ids(b.expired); !slices.Equal(got, []string{"sent-long-ago"}) {
		t.Errorf("messages to remove = %q, want sent-long-ago", got)
	}
	if got := ids(b.overdue); !slices.Equal(got, []string{"old"}) {
		t.Errorf("overdue messages = %q, want old", got)
	}
	if want := now.Add(time.Minute); !b.next.Equal(want) {
		t.Errorf("next time = %s, want %s", b.next, want)
	}
	var many []api.MailMessage
	for n := range maxKept + 5 {
		many = append(many, message(fmt.Sprint(n), api.MailTypeTest, api.MailMessageStatus{State: api.MailFailed, DoneAt: at(-time.Duration(n) * time.Second)}))
	}
	if got := sorted(many, keepSent, now).expired; len(got) != 5 || got[0].Meta.ID != fmt.Sprint(maxKept) {
		t.Errorf("messages to remove = %d, want the 5 oldest", len(got))
	}
}

// parsed is a message as the standard library parses it.
type parsed struct {
	*mail.Message
	parts []string          // text, then HTML
	files map[string]string // by name
}
