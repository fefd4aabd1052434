package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func TestWebhooks(t *testing.T) {
	w := newWorld(t)
	admin := must(t, ret(client.New(client.Options{Server: w.URL, Token: w.Key(t, api.Meta{Name: "a", Organization: w.acme}, api.RoleAdmin)}))).v
	hook := must(t, ret(client.Of[api.Webhook](admin).Create(t.Context(), api.Webhook{Meta: api.Meta{Name: "h"}, Spec: api.WebhookSpec{URL: "https://x.example"}}))).v
	if hook.Meta.Organization != w.acme || !strings.HasPrefix(hook.Secret, "whsec_") || hook.Spec.Keys != nil {
		t.Fatalf("new webhook = %+v, want organization %s, a secret and no keys", hook, w.acme)
	}
	id := hook.Meta.ID

	// The secret is not shown again, and clients cannot set it.
	for _, path := range []string{"/v1/webhooks", "/v1/webhooks/" + id} {
		if rec := w.call("GET", path, w.Token, ""); rec.Code != 200 || strings.Contains(rec.Body.String(), "secret") {
			t.Errorf("GET %s: %d %s, want 200 without the secret", path, rec.Code, rec.Body)
		}
	}
	hook.Spec.Keys, hook.Spec.Replays, hook.Spec.Tests = []api.WebhookKey{{Secret: "mine"}}, 9, 9
	hook.Spec.Events = []string{"instance.*"}
	hook = must(t, ret(client.Of[api.Webhook](admin).Update(t.Context(), id, hook))).v
	stored := func() api.WebhookSpec {
		return must(t, ret(api.Decode[api.Webhook](must(t, ret(w.Store.Get(t.Context(), api.KindWebhook, id))).v))).v.Spec
	}
	if s := stored(); len(s.Keys) != 1 || s.Keys[0].Secret == "mine" || s.Replays != 0 || s.Tests != 0 || s.Events[0] != "instance.*" {
		t.Errorf("stored webhook after a change = %+v, want only URL, events and paused changed", s)
	}

	// Former secrets stay valid for the requested time, but never longer than before.
	first := stored().Keys[0].Secret
	for i, keep := range []int64{3600, 86400, 0} {
		if next := must(t, ret(admin.RotateWebhook(t.Context(), id, keep))).v; !strings.HasPrefix(next.Secret, "whsec_") {
			t.Errorf("rotated webhook = %+v, want a new secret", next)
		}
		keys := stored().Keys
		if want := []int{2, 3, 1}[i]; len(keys) != want || keys[0].ExpiresAt != nil {
			t.Errorf("keys after %d rotations = %+v, want %d", i+1, keys, want)
		}
		if i == 1 && (keys[2].Secret != first || !keys[2].ExpiresAt.Before(*keys[1].ExpiresAt)) {
			t.Errorf("keys after 2 rotations = %+v, want the first secret to expire before the second", keys)
		}
	}
	if rec := w.call("POST", "/v1/webhooks/"+id+"/rotate", w.Token, `{"keepSeconds":-1}`); rec.Code != http.StatusBadRequest {
		t.Errorf("rotate with negative keepSeconds: %d %s, want 400", rec.Code, rec.Body)
	}

	// A test event is sent to this webhook only; deliveries are derived from the
	// status.
	must(t, ret(admin.TestWebhook(t.Context(), id)))
	must(t, ret(admin.TestWebhook(t.Context(), id)))
	deliveries := func() (out []string) {
		for d, err := range admin.Deliveries(t.Context(), id) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprint(d.Event.Type, " ", d.State, d.LastError))
		}
		return out
	}
	if got := deliveries(); len(got) != 2 || got[0] != "webhook.test Waiting" {
		t.Errorf("deliveries before any attempt = %q, want 2 waiting", got)
	}
	told := must(t, ret(w.Store.Events(t.Context(), api.EventQuery{Organization: w.acme, Limit: 1000}))).v.Items
	last := told[len(told)-1]
	report := func(s api.WebhookStatus) {
		w.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindWebhook, ID: id, Expect: api.AnyRevision, Data: api.Encode(s)})
	}
	report(api.WebhookStatus{Cursor: last.Seq - 1, Attempts: 3, LastError: " no", Cause: api.Cause{Code: api.CauseReceiverUnreachable, Plain: true}})
	if got := deliveries(); len(got) != 2 || got[0] != "webhook.test Retrying no" || got[1] != "webhook.test Delivered" {
		t.Errorf("deliveries after failed attempts = %q, want one retrying and one delivered", got)
	}
	report(api.WebhookStatus{Cursor: last.Seq, GivenUp: 1, GivenUpEvents: []api.WebhookGivenUp{{Seq: last.Seq, Error: " gone", Cause: api.Cause{Code: api.CauseReceiverUnreachable, Plain: true}}}})
	if got := deliveries(); got[0] != "webhook.test GivenUp gone" {
		t.Errorf("deliveries after giving up = %q, want the last one given up", got)
	}
	report(api.WebhookStatus{Cursor: last.Seq, GivenUp: 7, GivenUpEvents: []api.WebhookGivenUp{{Seq: last.Seq}}})
	if got := deliveries(); got[0] != "webhook.test GivenUp" || got[1] != "webhook.test Past" {
		t.Errorf("deliveries after giving up several = %q, want the older one past", got)
	}
	other := must(t, ret(client.Of[api.Webhook](admin).Create(t.Context(), api.Webhook{Meta: api.Meta{Name: "h2"}, Spec: api.WebhookSpec{URL: "https://y.example"}}))).v
	for d, err := range admin.Deliveries(t.Context(), other.Meta.ID) {
		if err != nil || d.Event.Type == api.EventTest {
			t.Errorf("delivery of another webhook = %+v, error %v; want no test event", d, err)
		}
	}

	// A replay starts with an event or a time.
	must(t, ret(admin.ReplayWebhook(t.Context(), id, last.ID)))
	if s := stored(); s.Replays != 1 || s.ReplayAfter != last.Seq-1 {
		t.Errorf("webhook after a replay from an event = %+v, want 1 replay after %d", s, last.Seq-1)
	}
	must(t, ret(admin.ReplayWebhook(t.Context(), id, "2020-01-01T00:00:00Z")))
	if s := stored(); s.Replays != 2 || s.ReplayAfter != told[0].Seq-1 {
		t.Errorf("webhook after a replay from 2020 = %+v, want 2 replays after %d", s, told[0].Seq-1)
	}
	must(t, ret(admin.ReplayWebhook(t.Context(), id, "2120-01-01T00:00:00Z")))
	if s := stored(); s.ReplayAfter != last.Seq {
		t.Errorf("webhook after a replay from the future = %+v, want after %d", s, last.Seq)
	}

	// Admins manage the webhooks of their organization; cluster-wide ones are for
	// operators.
	if rec := w.call("POST", "/v1/webhooks", w.Token, `{"meta":{"name":"all"},"spec":{"url":"https://z.example"}}`); rec.Code != http.StatusCreated {
		t.Errorf("create a cluster-wide webhook: %d %s, want %d", rec.Code, rec.Body, http.StatusCreated)
	}
	if page := must(t, ret(client.Of[api.Webhook](admin).Page(t.Context(), client.Query{}))).v; len(page.Items) != 2 {
		t.Errorf("an admin sees %d webhooks, want 2", len(page.Items))
	}
	for i := range api.MaxWebhooks {
		_, err := client.Of[api.Webhook](admin).Create(t.Context(), api.Webhook{Meta: api.Meta{Name: fmt.Sprint("n", i)}, Spec: api.WebhookSpec{URL: "https://x.example"}})
		if full := i >= api.MaxWebhooks-2; full != (err != nil) || full && api.CodeOf(err) != api.CodeQuota {
			t.Errorf("create webhook %d: %v, want quota exceeded: %v", i, err, full)
		}
	}
}
