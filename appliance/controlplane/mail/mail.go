package mail

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	perConnection = 20  // messages; then new ones are read
	perBatch      = 100 // commands that clean up
	// errorPause is how long to wait after an error of the store.
	errorPause = time.Second
)

// Store is the required part of the cluster's state; writes are valid in the leader's
// term only.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
	Events(ctx context.Context, q api.EventQuery) (api.EventPage, error)
	Revision() int64
}

// Options configure a Mailer.
type Options struct {
	Store Store
	// Open decrypts a secret; nil means that secrets are not encrypted.
	Open func(ctx context.Context, sealed string) (string, error)
	// Alerts returns the current alerts; nil means that none are sent.
	Alerts func(ctx context.Context) ([]api.Alert, error)
	// InvoicePDF returns an invoice as PDF, for messages about it; nil means that none
	// is attached.
	InvoicePDF func(context.Context, api.Invoice) ([]byte, error)
	// Roots are the CAs that certify the mail server; nil means the system's.
	Roots *x509.CertPool
	Log   *slog.Logger
	// For tests. Now and Wait are the clock: Wait returns after d; Connect and Send
	// limit connecting and sending one message.
	Now           func() time.Time
	Wait          func(ctx context.Context, d time.Duration)
	Connect, Send time.Duration
	Look          time.Duration // time between checks for changes; 0 means a second
}

// Mailer sends mail while this node leads.
type Mailer struct {
	o        Options
	last     time.Time // when a message was last sent, for the rate limit
	settings int64     // revision of the settings that status.NextAt is about
	alertsAt time.Time // when alerts were last read
	// suspected are the keys of the alerts of that read.
	suspected []string
	cursor    int64 // sequence of the last event that was read: ahead of the status's
}

// New returns a Mailer.
func New(o Options) *Mailer {
	if o.Open == nil {
		o.Open = func(_ context.Context, s string) (string, error) { return s, nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = func(ctx context.Context, d time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
		}
	}
	if o.Connect == 0 {
		o.Connect = connectTime
	}
	if o.Send == 0 {
		o.Send = sendTime
	}
	if o.Look == 0 {
		o.Look = time.Second
	}
	return &Mailer{o: o}
}

// Run sends messages until ctx ends.
func (m *Mailer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		seen := m.o.Store.Revision()
		next, err := m.step(ctx)
		if err != nil && ctx.Err() == nil {
			m.o.Log.Warn("send mail failed, retrying", "error", err)
			next = m.o.Now().Add(errorPause)
		}
		for ctx.Err() == nil && (next.IsZero() || m.o.Now().Before(next)) && (err != nil || m.o.Store.Revision() == seen) {
			m.o.Wait(ctx, m.o.Look)
		}
	}
	return ctx.Err()
}

// state is the stored configuration and status.
type state struct {
	settings api.StoredMailSettings
	status   api.MailStatus
}

// step does what is due now. next is when more is due; zero means when something
// changes.
func (m *Mailer) step(ctx context.Context) (next time.Time, err error) {
	s, err := m.read(ctx)
	if err != nil || !s.settings.Spec.Enabled {
		return next, err
	}
	all, err := api.All[api.MailMessage](ctx, m.o.Store, api.ListQuery{Kind: api.KindMailMessage})
	if err != nil {
		return next, err
	}
	now := m.o.Now().UTC()
	keep := keepSent
	if s.settings.Spec.Bounces != nil {
		keep = keepSentBounces
	}
	b := sorted(all, keep, now)
	if b.waiting < api.MaxMailMessages { // otherwise events wait
		if made, err := m.queueEvents(ctx, &s); made || err != nil {
			return now, err
		}
		if made, err := m.alarm(ctx, &s, now); made || err != nil {
			return now, err
		}
	}
	if m.o.Alerts != nil && len(s.settings.Spec.AlertsTo) > 0 {
		b.later(m.alertsAt.Add(alarmEvery))
	}
	if len(b.expired)+len(b.overdue) > 0 {
		return now, m.tidy(ctx, s, b, now)
	}
	if s.status.NextAt != nil && now.Before(*s.status.NextAt) && m.settings == s.settings.Meta.Revision {
		b.later(*s.status.NextAt)
		return b.next, nil
	}
	m.settings = s.settings.Meta.Revision
	if len(b.due) == 0 {
		return b.next, nil
	}
	none, err := m.suppressed(ctx)
	if err != nil {
		return next, err
	}
	if held, rest := withheld(b.due, all, none, now); len(held) > 0 {
		m.o.Log.Info("mail to suppressed addresses is not sent", "messages", len(b.due)-len(rest))
		return now, m.apply(ctx, now, held[:min(len(held), 2*perBatch)]...)
	}
	return now, m.deliver(ctx, s, b.due[:min(len(b.due), perConnection)])
}

// read reads the settings and the status; those that do not exist are empty.
func (m *Mailer) read(ctx context.Context) (s state, err error) {
	if s.settings, err = api.Settings[api.StoredMailSettings](ctx, m.o.Store, api.KindMailSettings, api.MailSettingsID); err != nil {
		return s, fmt.Errorf("read mail settings: %w", err)
	}
	status, err := api.Settings[api.StoredMailSettings](ctx, m.o.Store, api.KindMailSettings, api.MailStatusID)
	if err != nil {
		return s, fmt.Errorf("read mail status: %w", err)
	}
	s.status = status.Status
	return s, nil
}

// tidy removes messages that are not needed any more, and fails those that have waited
// too long.
func (m *Mailer) tidy(ctx context.Context, s state, b box, now time.Time) error {
	var cmds []api.Command
	for _, x := range b.expired[:min(len(b.expired), perBatch)] {
		cmds = append(cmds, api.Command{Op: api.OpDelete, Kind: api.KindMailMessage, ID: x.Meta.ID, Expect: x.Meta.Revision})
	}
	for _, x := range b.overdue[:min(len(b.overdue), perBatch)] {
		m.o.Log.Warn("mail was given up", "message", x.Meta.ID, "type", x.Spec.Type, "attempts", x.Status.Attempts)
		cmds = append(cmds, finished(x, overdue(x, s.status, now))...)
		s.status.Failed, s.status.FailedAt = s.status.Failed+1, &now
	}
	return m.apply(ctx, now, append(cmds, reported(s.status))...)
}

// deliver sends messages to the server on one connection, and writes the outcome after
// each.
func (m *Mailer) deliver(ctx context.Context, s state, due []api.MailMessage) error {
	a := account{settings: s.settings.Spec, roots: m.o.Roots, connect: m.o.Connect, send: m.o.Send}
	if a.settings.Password != "" {
		var err error
		if a.password, err = m.o.Open(ctx, a.settings.Password); err != nil {
			return m.apply(ctx, m.o.Now().UTC(), reported(afterServer(s.status, verdict{err: errSealed, server: true}, m.o.Now().UTC())))
		}
	}
	server, failed := a.open(ctx)
	if failed.err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m.o.Log.Warn("mail server cannot be used", "error", failed.err)
		now := m.o.Now().UTC()
		return m.apply(ctx, now, reported(afterServer(s.status, failed, now)))
	}
	defer server.close()
	for _, x := range due {
		m.pace(ctx, a.settings.PerMinute)
		v := m.one(ctx, server, s, &x)
		if ctx.Err() != nil {
			return ctx.Err() // the next leader finds out whether it was accepted
		}
		now := m.o.Now().UTC()
		s.status = afterServer(s.status, v, now)
		cmds := append(finished(x, after(x, v, now)), reported(s.status))
		if v.final && v.recipient {
			noted, err := m.noted(ctx, []returnedMail{{message: x, reason: v.err.Error(), permanent: permanentStatus(v.status)}}, now)
			if err != nil {
				return err
			}
			cmds = append(cmds, noted...)
		}
		if err := m.apply(ctx, now, cmds...); err != nil && api.CodeOf(err) != api.CodeNotFound {
			return err
		}
		if v.err != nil {
			m.o.Log.Warn("mail was refused", "message", x.Meta.ID, "type", x.Spec.Type, "final", v.final, "error", v.err)
		}
		if v.server {
			return nil
		}
	}
	return nil
}

// one composes and sends one message.
func (m *Mailer) one(ctx context.Context, server *session, s state, x *api.MailMessage) verdict {
	token := x.Spec.Secret
	if token != "" {
		var err error
		if token, err = m.o.Open(ctx, token); err != nil {
			return verdict{err: errSealed, final: true}
		}
	}
	brand, err := m.brandOf(ctx, x.Spec)
	if err != nil {
		return verdict{err: reason("read branding", err), notAttempted: true}
	}
	c := compose(*x, s.settings.Spec, brand, token)
	if c.file, err = m.attached(ctx, x.Spec); err != nil {
		return verdict{err: reason("attach invoice", err), notAttempted: true}
	}
	x.Status.MessageID = c.id
	msg, err := c.message()
	if err != nil {
		return verdict{err: reason("compose", err), final: true}
	}
	return server.deliver(msg)
}

// sold are the types of messages that come from whoever sells to the organization. All
// others come from the portal that its users use.
var sold = map[api.MailType]bool{api.MailTypeInvoice: true, api.MailTypeBilling: true, api.MailTypeBudget: true}

// brandOf returns the branding of a message.
func (m *Mailer) brandOf(ctx context.Context, s api.MailMessageSpec) (api.NearestBranding, error) {
	if sold[s.Type] {
		return api.SellerBranding(ctx, m.o.Store, s.Organization)
	}
	return api.BrandingFor(ctx, m.o.Store, s.Organization)
}

// pace waits until the rate limit allows one more message.
func (m *Mailer) pace(ctx context.Context, perMinute int) {
	gap := time.Minute / time.Duration(max(perMinute, 1))
	if left := m.last.Add(gap).Sub(m.o.Now()); left > 0 {
		m.o.Wait(ctx, min(left, gap))
	}
	m.last = m.o.Now()
}

// apply writes at least one command. The error names the object of the first.
func (m *Mailer) apply(ctx context.Context, now time.Time, cmds ...api.Command) error {
	if _, err := m.o.Store.Apply(ctx, api.Batch{At: now, Commands: cmds}); err != nil {
		return fmt.Errorf("write %s %s: %w", cmds[0].Kind, cmds[0].ID, err)
	}
	return nil
}

// finished returns the commands that write the status of a message. If it is done, its
// secret is removed.
func finished(m api.MailMessage, st api.MailMessageStatus) []api.Command {
	cmds := []api.Command{{Op: api.OpReport, Kind: api.KindMailMessage, ID: m.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(st)}}
	m.Status = st
	if m.Done() && m.Spec.Secret != "" {
		m.Spec.Secret = ""
		cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindMailMessage, ID: m.Meta.ID, Expect: api.AnyRevision, Labels: m.Meta.Labels, Data: api.Encode(m.Spec)})
	}
	return cmds
}

func reported(st api.MailStatus) api.Command {
	return api.Command{Op: api.OpReport, Kind: api.KindMailSettings, ID: api.MailStatusID, Expect: api.AnyRevision, Data: api.Encode(st)}
}
