package mail

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/basalt-gpu/basalt/api"
)

const bouncesEvery = time.Minute // time between two visits of the mailbox

// Bounces reads the mailbox to which mail servers return messages that they have accepted
// and could not deliver, while this node leads.
type Bounces struct{ m Mailer }

// NewBounces returns a Bounces. Of the options it uses Store, Open, Roots, Log and the clock.
func NewBounces(o Options) *Bounces { return &Bounces{*New(o)} }

// Run visits the mailbox until ctx ends.
func (b *Bounces) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		more, err := b.step(ctx)
		if err != nil && ctx.Err() == nil {
			b.m.o.Log.Warn("read returned mail failed, retrying", "error", err)
		}
		if !more {
			b.m.o.Wait(ctx, bouncesEvery)
		}
	}
	return ctx.Err()
}

// step visits the mailbox if it is due. more reports whether messages are left.
func (b *Bounces) step(ctx context.Context) (more bool, err error) {
	s, err := b.m.read(ctx)
	if err != nil || !s.settings.Spec.Enabled || s.settings.Spec.Bounces == nil {
		return false, err
	}
	o, err := api.Settings[api.StoredMailSettings](ctx, b.m.o.Store, api.KindMailSettings, api.MailBouncesID)
	if err != nil {
		return false, fmt.Errorf("read the status of returned mail: %w", err)
	}
	var st api.MailBouncesStatus
	if o.Status.Bounces != nil {
		st = *o.Status.Bounces
	}
	now := b.m.o.Now().UTC()
	if st.NextAt != nil && now.Before(*st.NextAt) && b.m.settings == s.settings.Meta.Revision {
		return false, nil
	}
	b.m.settings = s.settings.Meta.Revision
	was := st
	cmds, more, err := b.visit(ctx, *s.settings.Spec.Bounces, &st, now)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if st = afterVisit(st, err, now); len(cmds) == 0 && string(api.Encode(st)) == string(api.Encode(was)) {
		return more, nil
	}
	return more, b.m.apply(ctx, now, append(cmds, api.Command{Op: api.OpReport, Kind: api.KindMailSettings, ID: api.MailBouncesID, Expect: api.AnyRevision,
		Data: api.Encode(api.MailStatus{Bounces: &st})})...)
}

// visit reads the next messages of the mailbox. It returns the commands for what they
// report, and advances the status behind them, as far as it came before an error.
func (b *Bounces) visit(ctx context.Context, s api.MailBouncesSpec, st *api.MailBouncesStatus, now time.Time) (cmds []api.Command, more bool, err error) {
	password, err := b.m.o.Open(ctx, s.Password)
	if err != nil {
		return nil, false, errSealed
	}
	box, err := mailboxAccount{settings: s, password: password, roots: b.m.o.Roots}.open(ctx)
	if err != nil {
		return nil, false, err
	}
	defer box.close()
	if box.validity != uint32(st.Validity) { // another mailbox, or it was created again (RFC 9051, section 2.3.1.1)
		st.Validity, st.UID = int64(box.validity), 0
	}
	was := *st
	all, more, err := b.readReports(ctx, box, st, now)
	cmds, failed := b.m.noted(ctx, all, now)
	if failed != nil {
		*st = was // they are read again
		return nil, false, failed
	}
	for _, r := range all {
		status := r.message.Status
		status.State, status.LastError, status.DoneAt = api.MailBounced, r.reason, &now
		cmds = append(cmds, api.Command{Op: api.OpReport, Kind: api.KindMailMessage, ID: r.message.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(status)})
	}
	return cmds, more, err
}

// readReports reads the next messages of the mailbox, and advances the status behind them,
// as far as it came before an error. It returns the messages that they report about.
func (b *Bounces) readReports(ctx context.Context, box *mailbox, st *api.MailBouncesStatus, now time.Time) (all []returnedMail, more bool, err error) {
	uids, err := box.after(uint32(st.UID), now.Add(-keepSentBounces))
	for _, uid := range uids {
		raw, err := box.read(uid)
		if err != nil {
			return all, false, err
		}
		made, err := b.returned(ctx, raw, uid)
		if err != nil {
			return all, false, err
		}
		if made != nil && !slices.ContainsFunc(all, func(r returnedMail) bool { return r.message.Meta.ID == made.message.Meta.ID }) { // or it was reported twice
			st.Bounced, st.BouncedAt = st.Bounced+1, &now
			all = append(all, *made)
		}
		st.UID = int64(uid)
	}
	return all, len(uids) == perVisit, err
}

// returned returns the message that raw reports about, nil if there is none. A report counts only if it names the message by its Message-ID, which whoever was
// not sent it does not know, and the recipient.
func (b *Bounces) returned(ctx context.Context, raw []byte, uid imap.UID) (*returnedMail, error) {
	r, ok := parseReport(raw)
	if !ok {
		return nil, nil
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(r.messageID, "<"), "@")
	o, err := b.m.o.Store.Get(ctx, api.KindMailMessage, id)
	if api.CodeOf(err) == api.CodeNotFound {
		return nil, nil // not one of the cluster, or removed meanwhile
	}
	if err != nil {
		return nil, fmt.Errorf("read mail message %s: %w", id, err)
	}
	x, err := api.Decode[api.MailMessage](o)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(r.failed, func(f failedRecipient) bool { return slices.Contains(f.addresses, strings.ToLower(x.Spec.To)) })
	if at < 0 || x.Status.MessageID != r.messageID || x.Status.State != api.MailSent {
		b.m.o.Log.Info("report about mail was ignored", "message", id, "uid", uid, "state", x.Status.State)
		return nil, nil
	}
	b.m.o.Log.Warn("mail was returned", "message", id, "type", x.Spec.Type, "reason", r.failed[at].reason)
	return &returnedMail{message: x, reason: r.failed[at].reason, permanent: permanentStatus(r.failed[at].status)}, nil
}

// afterVisit returns the status after a visit.
func afterVisit(st api.MailBouncesStatus, err error, now time.Time) api.MailBouncesStatus {
	if err != nil {
		st.Attempts, st.LastError = st.Attempts+1, err.Error()
		at := now.Add(serverWaits.Wait("bounces", st.Attempts))
		st.NextAt = &at
		return st
	}
	st.Attempts, st.NextAt, st.LastError = 0, nil, ""
	return st
}
