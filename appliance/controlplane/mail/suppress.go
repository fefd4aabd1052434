package mail

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// returnedMail is a message that was returned, or that the mail server refused because of
// its recipient.
type returnedMail struct {
	message   api.MailMessage
	reason    string
	permanent bool // no other message will arrive either
}

// permanentStatus reports whether a status code means that an address will not accept any
// other message either (RFC 3463, sections 3.2 and 3.3: the address is wrong, or its mailbox
// is disabled). Other reasons, such as a full mailbox or a message that looks like spam, may
// end.
func permanentStatus(status string) bool {
	return strings.HasPrefix(status, "5.1.") && status != "5.1.7" && status != "5.1.8" || status == "5.2.1" // 5.1.7, 5.1.8: the sender's address
}

// noted returns the commands that record what was returned, one address after the other.
func (m *Mailer) noted(ctx context.Context, all []returnedMail, now time.Time) (cmds []api.Command, err error) {
	known := map[string]api.MailSuppression{}
	var order []string
	for _, r := range all {
		address := strings.ToLower(r.message.Spec.To)
		id := api.MailSuppressionIDOf(address)
		s, seen := known[id]
		if !seen {
			if s, _, err = api.Find[api.MailSuppression](ctx, m.o.Store, api.KindMailSuppression, id); err != nil {
				return nil, fmt.Errorf("read mail suppression %s: %w", id, err)
			}
			order = append(order, id)
		}
		if s.Meta.Organization == "" {
			s.Meta.Organization = r.message.Spec.Organization
		}
		s.Spec.Address = address
		was := s.Status.SuppressedAt
		if s.Status = s.Status.Returned(r.message.Meta.ID, r.reason, r.permanent, now); was == nil && s.Status.SuppressedAt != nil {
			m.o.Log.Warn("mail to an address is suppressed", "suppression", id, "message", r.message.Meta.ID, "reason", r.reason)
		}
		known[id] = s
	}
	for _, id := range order {
		s := known[id]
		if s.Meta.ID == "" {
			cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindMailSuppression, ID: id, Name: id, Organization: s.Meta.Organization, Data: api.Encode(s.Spec)})
		}
		cmds = append(cmds, api.Command{Op: api.OpReport, Kind: api.KindMailSuppression, ID: id, Expect: api.AnyRevision, Data: api.Encode(s.Status)})
	}
	return cmds, nil
}

// suppressed returns the addresses that get no ordinary mail, in lower case, and why.
func (m *Mailer) suppressed(ctx context.Context) (map[string]string, error) {
	all, err := api.All[api.MailSuppression](ctx, m.o.Store, api.ListQuery{Kind: api.KindMailSuppression})
	if err != nil {
		return nil, fmt.Errorf("read the mail suppressions: %w", err)
	}
	out := map[string]string{}
	for _, s := range all {
		if s.Status.SuppressedAt != nil {
			out[s.Spec.Address] = s.Status.LastError
		}
	}
	return out, nil
}

// withheld returns the messages of due that are not to be sent because their address is
// suppressed, with the status that they get, and the others. all are the messages of the
// outbox, also those that were sent: an essential message is sent to a suppressed address, a
// few in a day.
func withheld(due, all []api.MailMessage, suppressed map[string]string, now time.Time) (held []api.Command, rest []api.MailMessage) {
	sent := map[string]int{}
	for _, x := range all {
		if x.Status.State == api.MailSent && x.Status.DoneAt != nil && now.Sub(*x.Status.DoneAt) < 24*time.Hour {
			sent[strings.ToLower(x.Spec.To)]++
		}
	}
	for _, x := range due {
		to := strings.ToLower(x.Spec.To)
		why, is := suppressed[to]
		if is && x.Spec.Type.Essential() && sent[to] < api.MaxSuppressedMail {
			sent[to]++
			is = false
		}
		if !is {
			rest = append(rest, x)
			continue
		}
		st := x.Status
		st.State, st.NextAt, st.DoneAt = api.MailFailed, nil, &now
		st.LastError = "mail to this address is suppressed: " + why
		held = append(held, finished(x, st)...)
	}
	return held, slices.Clip(rest)
}
