package mail

import (
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/basalt-gpu/basalt/api"
)

func (h *fixture) suppression(address string) (api.MailSuppression, bool) {
	h.Helper()
	s, there, err := api.Find[api.MailSuppression](h.Context(), h.store, api.KindMailSuppression, api.MailSuppressionIDOf(address))
	if err != nil {
		h.Fatal(err)
	}
	return s, there
}

// TestReturnedCounts checks when returned mail suppresses an address: a permanent reason at
// once, temporary ones the third time within 30 days of each other.
func TestReturnedCounts(t *testing.T) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		days      []int // when mail was returned
		permanent bool  // the last time
		want      bool
	}{
		"permanent":           {[]int{0}, true, true},
		"once":                {[]int{0}, false, false},
		"three times":         {[]int{0, 20, 40}, false, true},
		"three times, slowly": {[]int{0, 20, 60}, false, false},
	} {
		var st api.MailSuppressionStatus
		for i, d := range c.days {
			st = st.Returned("mail-1", "full", c.permanent && i == len(c.days)-1, start.AddDate(0, 0, d))
		}
		if got := st.SuppressedAt != nil; got != c.want {
			t.Errorf("%s: suppressed is %t (%+v), want %t", name, got, st, c.want)
		}
	}
	for status, want := range map[string]bool{"5.1.1": true, "5.1.10": true, "5.2.1": true, "5.2.2": false, "5.7.1": false, "5.1.8": false, "4.4.1": false, "5.0.0": false, "": false} {
		if got := permanentStatus(status); got != want {
			t.Errorf("permanentStatus(%q) = %t, want %t", status, got, want)
		}
	}
}

// TestSuppressed checks that an address whose mail the server refuses for good gets no
// ordinary mail any more, but a few messages that its user asks for, until it is lifted.
func TestSuppressed(t *testing.T) {
	h := newFixture(t)
	gone := true
	p := newPost(t, func(p *post) {
		p.rcpt = func(to string) error {
			if gone && strings.EqualFold(to, "ann@example.com") {
				return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "user unknown"}
			}
			return nil
		}
	})
	h.configure(p.at, nil)
	m := New(Options{Store: h.store, Now: h.clock, Wait: h.wait, Connect: time.Minute, Send: time.Minute})
	send := func(id string, typ api.MailType, to string) api.MailMessageStatus {
		t.Helper()
		h.queue(id, api.MailMessageSpec{Type: typ, To: to, User: "usr-1", Organization: "org-1"})
		for range 20 {
			if _, err := m.step(t.Context()); err != nil {
				t.Fatal(err)
			}
			if x := h.message(id); x.Done() {
				return x.Status
			}
		}
		t.Fatalf("message %s is not done: %+v", id, h.message(id).Status)
		return api.MailMessageStatus{}
	}
	if st := send("mail-1", api.MailTypeInvoice, "Ann@example.com"); st.State != api.MailFailed {
		t.Errorf("status of refused mail = %+v, want Failed", st)
	}
	s, there := h.suppression("ann@example.com")
	if !there || s.Status.SuppressedAt == nil || s.Meta.Organization != "org-1" || s.Status.Message != "mail-1" || !strings.Contains(s.Status.LastError, "user unknown") {
		t.Fatalf("suppression = %+v, want one of organization org-1 with the server's answer", s)
	}
	gone = false
	if st := send("mail-2", api.MailTypeInvoice, "ann@example.com"); st.State != api.MailFailed || !strings.Contains(st.LastError, "suppressed") {
		t.Errorf("status of mail to a suppressed address = %+v, want Failed: suppressed", st)
	}
	if st := send("mail-3", api.MailTypeInvoice, "bob@example.com"); st.State != api.MailSent {
		t.Errorf("status of mail to another address = %+v, want Sent", st)
	}
	for i, id := range []string{"mail-4", "mail-5", "mail-6", "mail-7"} {
		want := api.MailSent
		if i >= api.MaxSuppressedMail {
			want = api.MailFailed
		}
		if st := send(id, api.MailTypePasswordReset, "ann@example.com"); st.State != want {
			t.Errorf("status of password reset %d to a suppressed address = %+v, want %s", i+1, st, want)
		}
	}
	if got := len(p.taken()); got != 4 {
		t.Errorf("messages at the server = %d, want 4", got)
	}
	h.apply(api.Command{Op: api.OpDelete, Kind: api.KindMailSuppression, ID: s.Meta.ID, Expect: s.Meta.Revision})
	if st := send("mail-8", api.MailTypeInvoice, "ann@example.com"); st.State != api.MailSent {
		t.Errorf("status after the suppression was lifted = %+v, want Sent", st)
	}
}
