package api

import (
	"strings"
	"testing"
)

func TestWebhookSpecs(t *testing.T) {
	hook := func(url string, events ...string) error {
		return ValidateWebhook(WebhookSpec{URL: url, Events: events})
	}
	for _, c := range []struct {
		err   error
		field string
	}{
		{hook("https://a.example/x?y=z"), ""}, {hook("http://a.example:8080", "instance.failed", "instance.*", "*", "invoice.issued.late"), ""},
		{hook(""), "spec.url"}, {hook("ftp://a"), "spec.url"}, {hook("https://"), "spec.url"}, {hook("https://u:p@a"), "spec.url"}, {hook("https://a/#b"), "spec.url"},
		{hook("/x"), "spec.url"}, {hook("https://a/" + strings.Repeat("x", 2048)), "spec.url"}, {hook("file:///etc/passwd"), "spec.url"}, {hook("https://a\n"), "spec.url"},
		{hook("https://a", "x", "Nope"), "spec.events[1]"}, {hook("https://a", "a..b"), "spec.events[0]"}, {hook("https://a", "a*"), "spec.events[0]"}, {hook("https://a", ""), "spec.events[0]"},
	} {
		bad(t, "webhook", c.err, c.field)
	}
}

func TestWantedBy(t *testing.T) {
	e := WebhookEvent{Type: "instance.failed", Organization: "org-1"}
	own := WebhookEvent{Type: EventTest, Organization: "org-1", Webhook: "hook-1"}
	for _, c := range []struct {
		e    WebhookEvent
		org  string
		want string
		ok   bool
	}{
		{e, "org-1", "", true}, {e, "", "", true}, {e, "org-2", "", false}, {e, "org-1", "instance.*", true}, {e, "org-1", "*", true},
		{e, "org-1", "instance.failed", true}, {e, "org-1", "instance", false}, {e, "org-1", "volume.*", false}, {own, "org-1", "volume.*", true},
	} {
		var patterns []string
		if c.want != "" {
			patterns = []string{c.want}
		}
		if got := c.e.WantedBy("hook-1", c.org, patterns); got != c.ok {
			t.Errorf("WantedBy for %+v = %v, want %v", c, got, c.ok)
		}
	}
	if own.WantedBy("hook-2", "org-1", nil) {
		t.Error("WantedBy = true for a test event of another webhook, want false")
	}
}

func FuzzEventSeq(f *testing.F) {
	f.Add("evt-00000000002a")
	f.Add("evt--1")
	f.Add("evt-0x2a")
	f.Fuzz(func(t *testing.T, id string) {
		if seq, ok := EventSeq(id); ok && eventID(seq) != id {
			t.Errorf("EventSeq(%q) = %d, whose event ID is %q; want the same ID", id, seq, eventID(seq))
		}
	})
}
