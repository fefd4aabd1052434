package mail

import (
	"cmp"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	keepSent = 24 * time.Hour
	// keepSentBounces is how long sent messages are kept if the mailbox of returned mail is
	// read: other mail servers try for up to five days (RFC 5321, section 4.5.4.1).
	keepSentBounces = 7 * 24 * time.Hour
	keepFailed      = 30 * 24 * time.Hour
	// maxKept is how many finished messages are kept; the oldest are removed.
	maxKept = 2000
)

// Waits between attempts of one message, and of a server that cannot be used.
var (
	messageWaits = api.Backoff{First: 30 * time.Second, Last: time.Hour}
	serverWaits  = api.Backoff{First: 5 * time.Second, Last: 10 * time.Minute}
)

// verdict is the outcome of one attempt.
type verdict struct {
	err          error  // nil: the server accepted the message
	final        bool   // the server will never accept it
	recipient    bool   // the recipient is the reason
	status       string // RFC 3463: 5.1.1; empty if the server has sent none
	server       bool   // the server or the settings are the reason: other messages would fail too
	notAttempted bool   // the message was not involved, and its attempts do not count
}

// after returns the status of a message after an attempt.
func after(m api.MailMessage, v verdict, now time.Time) api.MailMessageStatus {
	st := m.Status
	if v.err == nil {
		return api.MailMessageStatus{State: api.MailSent, Attempts: st.Attempts, DoneAt: &now, MessageID: st.MessageID}
	}
	st.State, st.LastError = api.MailWaiting, v.err.Error()
	if !v.notAttempted {
		st.Attempts++
	}
	if v.final {
		st.State, st.NextAt, st.DoneAt = api.MailFailed, nil, &now
		return st
	}
	if !v.notAttempted {
		at := now.Add(messageWaits.Wait(m.Meta.ID, st.Attempts))
		st.NextAt = &at
	}
	return st
}

// overdue returns the status of a message that has waited too long.
func overdue(m api.MailMessage, server api.MailStatus, now time.Time) api.MailMessageStatus {
	st := m.Status
	st.State, st.NextAt, st.DoneAt = api.MailFailed, nil, &now
	st.LastError = "it has waited too long: " + cmp.Or(st.LastError, server.LastError, "there was no time to send it")
	return st
}

// afterServer returns the status of sending after an attempt.
func afterServer(st api.MailStatus, v verdict, now time.Time) api.MailStatus {
	switch {
	case v.server:
		st.Attempts++
		st.LastError = v.err.Error()
		at := now.Add(serverWaits.Wait("mail", st.Attempts))
		st.NextAt = &at
		return st
	case v.err == nil:
		st.Sent, st.SentAt = st.Sent+1, &now
	case v.final:
		st.Failed, st.FailedAt = st.Failed+1, &now
	}
	st.Attempts, st.NextAt, st.LastError = 0, nil, ""
	return st
}

// box is the messages, sorted by what is to be done with them.
type box struct {
	due     []api.MailMessage // to be sent now, most urgent first
	overdue []api.MailMessage
	expired []api.MailMessage // to be removed
	next    time.Time         // when there is more to do; zero means when something changes
	waiting int
}

// sorted sorts all messages by what is to be done with them. Sent ones are kept for
// keepSent.
func sorted(all []api.MailMessage, keepSent time.Duration, now time.Time) box {
	var b box
	var done []api.MailMessage
	for _, m := range all {
		switch {
		case m.Done():
			done = append(done, m)
		case withoutRecipient(m):
			b.expired = append(b.expired, m)
		case !now.Before(m.Until()):
			b.overdue = append(b.overdue, m)
		case m.Status.NextAt != nil && now.Before(*m.Status.NextAt):
			b.waiting++
			b.later(*m.Status.NextAt)
		default:
			b.waiting++
			b.due = append(b.due, m)
		}
	}
	slices.SortStableFunc(b.due, func(x, y api.MailMessage) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), x.Meta.CreatedAt.Compare(y.Meta.CreatedAt), cmp.Compare(x.Meta.ID, y.Meta.ID))
	})
	slices.SortFunc(done, func(x, y api.MailMessage) int { return doneAt(y).Compare(doneAt(x)) })
	for i, m := range done {
		end := doneAt(m).Add(keepSent)
		if m.Undelivered() {
			end = doneAt(m).Add(keepFailed)
		}
		if i >= maxKept || !now.Before(end) {
			b.expired = append(b.expired, m)
		} else {
			b.later(end)
		}
	}
	return b
}

func (b *box) later(at time.Time) {
	if b.next.IsZero() || at.Before(b.next) {
		b.next = at
	}
}

// withoutRecipient reports whether a message was requested for an address that is not a
// user's: the API queues one nonetheless, so that its response takes as long.
func withoutRecipient(m api.MailMessage) bool {
	return m.Spec.Type == api.MailTypePasswordReset && m.Spec.User == ""
}

// rank ranks messages that somebody waits for before others.
func rank(m api.MailMessage) int {
	switch m.Spec.Type {
	case api.MailTypeTest, api.MailTypePasswordReset, api.MailTypeSignUp, api.MailTypeSignUpKnown:
		return 0
	case api.MailTypeInvitation, api.MailTypeAlerts:
		return 1
	}
	return 2
}

func doneAt(m api.MailMessage) time.Time {
	if m.Status.DoneAt == nil {
		return m.Meta.CreatedAt
	}
	return *m.Status.DoneAt
}
