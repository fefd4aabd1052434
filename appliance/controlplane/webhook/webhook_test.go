package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/api/webhooksig"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// fixture contains a store, a clock and receivers.
type fixture struct {
	*testing.T
	store *memstore.Store

	mu     sync.Mutex // guards now
	now    time.Time
	secret string
}

func newFixture(t *testing.T) *fixture {
	return &fixture{T: t, store: memstore.New(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), secret: webhooksig.NewSecret()}
}

func (h *fixture) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *fixture) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// wait advances the virtual clock instead of waiting.
func (h *fixture) wait(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	if d < 0 {
		wait(ctx, d, wake)
		return
	}
	h.advance(d)
}

func (h *fixture) apply(cmds ...api.Command) {
	h.Helper()
	if _, err := h.store.Apply(h.Context(), api.Batch{At: h.clock(), Commands: cmds}); err != nil {
		h.Fatal(err)
	}
}

func (h *fixture) hook(id, org, url string, change func(*api.WebhookSpec)) {
	h.Helper()
	s := api.WebhookSpec{URL: url, Keys: []api.WebhookKey{{Secret: h.secret}}}
	if o, err := h.store.Get(h.Context(), api.KindWebhook, id); err == nil {
		w, _ := api.Decode[api.Webhook](o)
		s = w.Spec
	}
	if change != nil {
		change(&s)
	}
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindWebhook, ID: id, Name: id, Organization: org, Expect: api.AnyRevision, Data: api.Encode(s)})
}

// event raises an event of an organization.
func (h *fixture) event(org string, n int) {
	h.Helper()
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-" + org, Expect: api.AnyRevision, Data: api.Encode(map[string]any{"n": n, "at": h.clock()}),
		Event: &api.CommandEvent{Type: "thing.happened", Organization: org, Data: api.Encode(n)}})
}

func (h *fixture) status(id string) api.WebhookStatus {
	h.Helper()
	o, err := h.store.Get(context.Background(), api.KindWebhook, id)
	if err != nil {
		h.Fatal(err)
	}
	w, err := api.Decode[api.Webhook](o)
	if err != nil {
		h.Fatal(err)
	}
	return w.Status
}

func (h *fixture) events(org string) []api.WebhookEvent {
	p, err := h.store.Events(context.Background(), api.EventQuery{Organization: org, Limit: 1000})
	if err != nil {
		h.Fatal(err)
	}
	return p.Items
}

// run runs a Deliverer until the returned function is called.
func (h *fixture) run(s Store, change func(*Options)) (stop func()) {
	o := Options{Store: s, URLs: outbound.Policy{Allow: loopback}, Now: h.clock, Wait: h.wait, Look: 2 * time.Millisecond}
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

// receiver verifies requests and records the accepted ones. If behave returns true, it
// has responded instead.
type receiver struct {
	*httptest.Server
	h        *fixture
	mu       sync.Mutex // guards the rest
	accepted []string   // IDs of the events with response 200
	requests int
	behave   func(n int, w http.ResponseWriter, r *http.Request) bool
}

func (h *fixture) receiver(behave func(n int, w http.ResponseWriter, r *http.Request) bool) *receiver {
	rec := &receiver{h: h, behave: behave}
	rec.Server = httptest.NewServer(rec)
	h.Cleanup(func() { rec.CloseClientConnections(); rec.Close() })
	return rec
}

func (rec *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	head := r.Header
	if err := webhooksig.Verify(rec.h.secret, head.Get(webhooksig.HeaderID), head.Get(webhooksig.HeaderTimestamp),
		head.Get(webhooksig.HeaderSignature), body, rec.h.clock(), 0); err != nil {
		rec.h.Errorf("verify request %s: %v", body, err)
	}
	rec.mu.Lock()
	rec.requests++
	n := rec.requests
	behave := rec.behave
	rec.mu.Unlock()
	if behave != nil && behave(n, w, r) {
		return
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.accepted = append(rec.accepted, head.Get(webhooksig.HeaderID))
}

func (rec *receiver) acceptedIDs() []string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return slices.Clone(rec.accepted)
}

// unique returns the IDs without repetitions.
func unique(ids []string) []string {
	var out []string
	for _, id := range ids {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

func ids(events []api.WebhookEvent) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.ID)
	}
	return out
}

func (h *fixture) until(what string, ok func() bool) {
	h.Helper()
	patience.Until(h, time.Minute, what, ok)
}

func fails(status int) func(int, http.ResponseWriter, *http.Request) bool {
	return func(_ int, w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(status); return true }
}

// A receiver that is down for more than a day loses the events that were retried for a
// day, and receives all later ones in order.
func TestReceiverDownForADay(t *testing.T) {
	h := newFixture(t)
	rec := h.receiver(fails(500))
	h.hook("hook-1", "org-1", rec.URL, nil)
	for n := range 5 {
		h.event("org-1", n)
	}
	began := h.clock()
	h.run(h.store, nil)
	h.until("the old events are given up", func() bool { return h.status("hook-1").GivenUp == 5 })
	st := h.status("hook-1")
	if away := h.clock().Sub(began); away < giveUp || away > giveUp+2*waits.Last {
		t.Errorf("events were given up after %s, want between %s and %s", away, giveUp, giveUp+2*waits.Last)
	}
	if rec.requests < 20 || rec.requests > 60 {
		t.Errorf("requests in a day = %d, want between 20 and 60", rec.requests)
	}
	if len(st.GivenUpEvents) != 5 || st.GivenUpEvents[0].Error != "receiver responded with status 500" || st.GivenUpEvents[0].Cause != (api.Cause{Code: api.CauseReceiverStatus, Count: 500, Plain: true}) || st.GivenUpEvents[0].Event != h.events("org-1")[0].ID {
		t.Errorf("status = %+v, want 5 events given up because of response 500, the oldest first", st)
	}
	rec.mu.Lock()
	rec.behave = nil
	rec.mu.Unlock()
	for n := range 3 {
		h.event("org-1", 10+n)
	}
	h.until("the new events arrive", func() bool { return len(rec.acceptedIDs()) >= 3 })
	if want := ids(h.events("org-1"))[5:]; !slices.Equal(rec.acceptedIDs(), want) {
		t.Errorf("events after the outage = %v, want %v", rec.acceptedIDs(), want)
	}
	// A replay delivers all events again.
	h.hook("hook-1", "org-1", rec.URL, func(s *api.WebhookSpec) { s.Replays, s.ReplayAfter = 1, 0 })
	h.until("the replay", func() bool { return len(rec.acceptedIDs()) >= 3+8 })
	if want := ids(h.events("org-1")); !slices.Equal(rec.acceptedIDs()[3:], want) {
		t.Errorf("replayed events = %v, want %v", rec.acceptedIDs()[3:], want)
	}
}

// flaky is a store whose writes of the cursor fail sometimes, as after a change of the
// leader.
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

// Whatever receivers and leaders do, each receiver accepts every event in order, except
// for those that the status lists as given up.
func TestEveryEventInOrder(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := newFixture(t)
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(seed, 1))
			draw := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
			rec := h.receiver(func(_ int, w http.ResponseWriter, r *http.Request) bool {
				switch draw(8) {
				case 0:
					w.WriteHeader(500)
				case 1: // exceeds every timeout
					<-r.Context().Done()
				case 2: // aborts in the middle of the response
					w.Header().Set("Content-Length", "100")
					_, _ = io.WriteString(w, "half")
					panic(http.ErrAbortHandler)
				case 3:
					http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
				case 4:
					panic(http.ErrAbortHandler)
				default:
					return false
				}
				return true
			})
			rec.Config.ErrorLog = nil
			h.hook("hook-1", "org-1", rec.URL, nil)
			const events = 40
			stop := func() {}
			for n := range events {
				if n%8 == 0 { // another leader
					stop()
					stop = h.run(flaky{h.store, func() bool { return draw(3) == 0 }}, func(o *Options) { o.Limit = 20 * time.Millisecond })
				}
				h.event("org-1", n)
				h.event("org-2", n)
			}
			last := h.events("org-1")[events-1].Seq
			h.until("the cursor is at the last event", func() bool { return h.status("hook-1").Cursor == last })
			stop()
			got, given := unique(rec.acceptedIDs()), h.status("hook-1").GivenUpEvents
			var want []string
			for _, e := range h.events("org-1") {
				lost := slices.ContainsFunc(given, func(g api.WebhookGivenUp) bool { return g.Seq == e.Seq })
				if !lost || slices.Contains(got, e.ID) {
					want = append(want, e.ID)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("accepted events = %v\nwant %v\ngiven up: %v", got, want, given)
			}
		})
	}
}

// The leader is killed after the receiver accepted an event but before the cursor is
// written: the next leader sends it again with the same ID, and continues.
func TestKilledBetweenSendAndCursor(t *testing.T) {
	h := newFixture(t)
	rec := h.receiver(nil)
	h.hook("hook-1", "org-1", rec.URL, nil)
	h.event("org-1", 1)
	h.event("org-1", 2)
	stop := h.run(flaky{h.store, func() bool { return true }}, nil)
	h.until("both events arrive", func() bool { return len(rec.acceptedIDs()) >= 2 })
	stop()
	if c := h.status("hook-1").Cursor; c != 0 {
		t.Fatalf("cursor = %d after all writes failed, want 0", c)
	}
	h.run(h.store, nil)
	h.until("the cursor is at the last event", func() bool { return h.status("hook-1").Cursor == h.events("org-1")[1].Seq })
	if want := ids(h.events("org-1")); !slices.Equal(unique(rec.acceptedIDs()), want) || len(rec.acceptedIDs()) < 4 {
		t.Errorf("accepted events = %v, want %v twice", rec.acceptedIDs(), want)
	}
}

// A receiver that hangs delays no other receiver.
func TestSlowReceiverDelaysNobodyElse(t *testing.T) {
	h := newFixture(t)
	slow := h.receiver(func(_ int, _ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
	quick := h.receiver(nil)
	h.hook("hook-1", "org-1", slow.URL, nil)
	h.hook("hook-2", "", quick.URL, func(s *api.WebhookSpec) { s.Events = []string{"thing.*"} })
	stop := h.run(h.store, func(o *Options) { o.Limit = time.Hour })
	for n := range 20 {
		h.event(fmt.Sprint("org-", n%2), n)
	}
	h.until("the quick receiver has all 20 events", func() bool { return len(quick.acceptedIDs()) == 20 })
	stop()
}

func TestPauseRotateAndFix(t *testing.T) {
	h := newFixture(t)
	rec := h.receiver(nil)
	h.hook("hook-1", "org-1", rec.URL, func(s *api.WebhookSpec) { s.Paused = true })
	h.event("org-1", 1)
	// The clock does not advance by itself: otherwise attempts would be over before the
	// test sees them.
	h.run(h.store, func(o *Options) {
		o.Wait = func(ctx context.Context, _ time.Duration, wake <-chan struct{}) { wait(ctx, -1, wake) }
	})
	h.until("the status is paused", func() bool { return h.status("hook-1").Paused })
	h.advance(48 * time.Hour) // time in a pause does not count towards giving up
	if len(rec.acceptedIDs()) != 0 {
		t.Fatalf("paused webhook received events %v, want none", rec.acceptedIDs())
	}
	old := h.clock().Add(time.Hour)
	h.hook("hook-1", "org-1", rec.URL, func(s *api.WebhookSpec) {
		s.Paused, s.Keys = false, []api.WebhookKey{{Secret: webhooksig.NewSecret()}, {Secret: h.secret, ExpiresAt: &old}}
	})
	h.until("the resumed webhook receives the event", func() bool { return len(rec.acceptedIDs()) == 1 }) // the receiver verifies with the old secret
	if st := h.status("hook-1"); st.GivenUp != 0 {
		t.Errorf("status after the pause = %+v, want no event given up", st)
	}
	// Correcting a wrong address triggers an attempt at once.
	h.hook("hook-1", "org-1", rec.URL, func(s *api.WebhookSpec) { s.URL = "http://127.0.0.1:1/" })
	h.event("org-1", 2)
	h.until("an attempt fails", func() bool { return h.status("hook-1").Attempts > 0 })
	h.hook("hook-1", "org-1", rec.URL, func(s *api.WebhookSpec) { s.URL = rec.URL })
	h.until("the event arrives at the corrected address", func() bool { return len(rec.acceptedIDs()) == 2 })
	// A deleted webhook receives no events.
	h.apply(api.Command{Op: api.OpDelete, Kind: api.KindWebhook, ID: "hook-1", Expect: api.AnyRevision})
	h.event("org-1", 3)
	time.Sleep(20 * time.Millisecond)
	if n := len(rec.acceptedIDs()); n != 2 {
		t.Errorf("events after the deletion = %d, want still 2", n)
	}
}

// A webhook cannot make the leader send requests to addresses that only the leader
// reaches.
func TestAddressesOfOthers(t *testing.T) {
	h := newFixture(t)
	rec := h.receiver(nil)
	port := rec.URL[strings.LastIndexByte(rec.URL, ':'):]
	for i, to := range []string{rec.URL, "http://localhost" + port, "http://[::ffff:127.0.0.1]" + port, "http://2130706433" + port, "http://0.0.0.0" + port, "http://[::1]" + port} {
		id := fmt.Sprint("hook-", i)
		h.hook(id, "org-1", to, nil)
	}
	h.event("org-1", 1)
	h.run(h.store, func(o *Options) { o.URLs = outbound.Policy{} })
	for i := range 6 {
		id := fmt.Sprint("hook-", i)
		h.until(id+" is refused", func() bool { st := h.status(id); return st.Attempts+st.GivenUp > 0 })
	}
	if st := h.status("hook-0"); !strings.Contains(st.LastError+fmt.Sprint(st.GivenUpEvents), outbound.ErrRefused.Error()) || !strings.Contains(fmt.Sprint(st), string(api.CauseReceiverForbidden)) {
		t.Errorf("status of hook-0 = %+v, want error %q", st, outbound.ErrRefused)
	}
	if rec.requests != 0 {
		t.Errorf("requests to the loopback receiver = %d, want 0", rec.requests)
	}
}

// A response may be endless, but only a limited part of it is read.
func TestEndlessAnswer(t *testing.T) {
	h := newFixture(t)
	rec := h.receiver(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				break
			}
		}
		return true
	})
	h.hook("hook-1", "org-1", rec.URL, nil)
	h.event("org-1", 1)
	h.run(h.store, nil)
	h.until("the event counts as delivered", func() bool { return h.status("hook-1").Delivered == 1 })
}

// A receiver that is down for a day has received only a few dozen requests.
func TestWaits(t *testing.T) {
	sum := time.Duration(0)
	for n := int64(1); n < 40; n++ {
		sum += waits.Wait("hook-1", n)
	}
	if sum < giveUp {
		t.Errorf("waits of 39 attempts sum to %v, want at least %v, after which an event is given up", sum, giveUp)
	}
}
