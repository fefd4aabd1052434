package lease

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	patience.Until(t, time.Minute, what, f)
}

type fakeLeader struct {
	verify func(context.Context) (uint64, error)
	id     api.NodeID
	leads  bool
}

func (l fakeLeader) Verify(ctx context.Context) (uint64, error) { return l.verify(ctx) }
func (l fakeLeader) IsLeader() bool                             { return l.leads }
func (l fakeLeader) LeaderID() api.NodeID                       { return l.id }

// TestVerifyIsShared checks that concurrent callers share one verification, and
// that no caller gets one that began before its call.
func TestVerifyIsShared(t *testing.T) {
	term := uint64(0)
	enter, leave := make(chan struct{}), make(chan struct{})
	r := rounds{verify: func(context.Context) (uint64, error) {
		term++
		enter <- struct{}{}
		<-leave
		return term, nil
	}}
	first := r.join()
	<-enter
	second := r.join()
	for range 50 {
		if r.join() != second {
			t.Fatal("a concurrent caller did not share the next round")
		}
	}
	if first == second {
		t.Fatal("a caller joined a round that had begun")
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.ask(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("ask with a canceled context: got error %v, want context.Canceled", err)
	}
	leave <- struct{}{}
	<-first.done
	<-enter
	third := r.join()
	leave <- struct{}{}
	<-second.done
	<-enter
	leave <- struct{}{}
	<-third.done
	if first.term != 1 || second.term != 2 || third.term != 3 {
		t.Errorf("got terms %d, %d, %d, want 1, 2, 3", first.term, second.term, third.term)
	}
}

func leading(verify func(context.Context) (uint64, error)) *Server {
	s := NewServer("a", fakeLeader{verify, "a", true}, nil)
	s.Elected(7, three)
	return s
}

func TestServer(t *testing.T) {
	term := uint64(7)
	var err error
	s := leading(func(context.Context) (uint64, error) { return term, err })
	post := func(body string) (code int, a Answer) {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, HeartbeatPath, strings.NewReader(body)))
		_ = json.Unmarshal(w.Body.Bytes(), &a)
		return w.Code, a
	}
	const ok = `{"v":1,"node":"b","epoch":0,"sees":[{"node":"c","path":"p","up":true}]}`
	if code, a := post(ok); code != 200 || !a.Granted {
		t.Errorf("heartbeat: got %d %+v, want 200 and granted", code, a)
	}
	if code, _ := post(`{"v":2,"node":"b"}`); code != 400 {
		t.Errorf("heartbeat of another version: got status %d, want 400", code)
	}
	if code, _ := post(`{"v":1,"node":"` + strings.Repeat("b", MaxBody) + `"}`); code != 400 {
		t.Errorf("heartbeat that is too long: got status %d, want 400", code)
	}
	term = 9 // elected again meanwhile; Elected was not called yet
	if _, a := post(ok); a.Granted || !a.NotLeader {
		t.Errorf("heartbeat in another term: %+v", a)
	}
	err = errors.New("no majority")
	if _, a := post(ok); a.Granted || !a.NotLeader {
		t.Errorf("heartbeat without verification: %+v", a)
	}
	if err := s.Revoke("x"); err == nil {
		t.Error("Revoke of an unknown node got no error")
	}
	if err := s.Revoke("b"); err != nil {
		t.Error(err)
	}
	if _, vs := s.Verdicts(); len(vs) != 3 {
		t.Errorf("got %d verdicts, want 3", len(vs))
	}
	s.Deposed()
	if err := s.Revoke("b"); err == nil {
		t.Error("Revoke after Deposed got no error")
	}
	follower := NewServer("b", fakeLeader{nil, "a", false}, nil)
	if a := follower.Heartbeat(t.Context(), beat("b", 0)); !a.NotLeader || a.Leader != "a" {
		t.Errorf("answer of a follower: %+v", a)
	}
}

// wire is a network that calls the leader's server, unless direct returns an error.
type wire struct {
	server *Server
	mu     sync.Mutex
	direct func(ctx context.Context) error
	via    []api.NodeID
}

func (w *wire) Call(ctx context.Context, _ api.NodeID, _, _ string, in, out any) error {
	w.mu.Lock()
	direct := w.direct
	w.mu.Unlock()
	if err := direct(ctx); err != nil {
		return err
	}
	return w.deliver(ctx, in, out)
}

func (w *wire) CallVia(ctx context.Context, via, _ api.NodeID, _, _ string, in, out any) error {
	w.mu.Lock()
	w.via = append(w.via, via)
	w.mu.Unlock()
	return w.deliver(ctx, in, out)
}

func (w *wire) deliver(ctx context.Context, in, out any) error {
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodPost, HeartbeatPath, bytes.NewReader(b)))
	return json.Unmarshal(rec.Body.Bytes(), out)
}

func TestClient(t *testing.T) {
	w := &wire{
		server: leading(func(context.Context) (uint64, error) { return 7, nil }),
		direct: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, // packets are dropped
	}
	leases, refusals := make(chan int64, 100), make(chan int64, 100)
	c := NewClient(ClientOptions{
		Self: "b", Peers: w, Leader: fakeLeader{nil, "a", false},
		Relays:    func() []api.NodeID { return []api.NodeID{"a", "b", "c"} },
		OnLease:   func(until Instant, epoch int64) { leases <- int64(until); _ = epoch },
		OnRefused: func(epoch int64) { refusals <- epoch },
	})
	if c.Valid(0) || c.State().Why == "" {
		t.Error("before the first heartbeat: lease is valid, or Why is empty")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	<-leases
	if !c.Valid(0) || !c.State().Valid {
		t.Errorf("state after a grant: %+v", c.State())
	}
	w.mu.Lock()
	for _, via := range w.via {
		if via != "c" {
			t.Errorf("relayed by %s, want c", via)
		}
	}
	w.direct = func(context.Context) error { return nil }
	w.mu.Unlock()

	lost := []Member{three[0], {ID: "b", Name: "node2", Epoch: 3, Lost: true}, three[2]}
	w.server.Members(lost)
	c.SendNow()
	if e := <-refusals; e != 3 {
		t.Errorf("refused with epoch %d, want 3", e)
	}
	if s := c.State(); s.Valid || s.Until != 0 || s.Refused != 3 {
		t.Errorf("state after a refusal: %+v", s)
	}
	c.Adopt(3)
	eventually(t, "state explains the missing lease", func() bool { return strings.Contains(c.State().Why, "declared lost") })
	lost[1].Lost = false
	w.server.Members(lost)
	eventually(t, "a lease of the new epoch", func() bool { s := c.State(); return s.Valid && s.Epoch == 3 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run got error %v, want context.Canceled", err)
	}
}

func TestClientOnTheLeader(t *testing.T) {
	s := leading(func(context.Context) (uint64, error) { return 7, nil })
	c := NewClient(ClientOptions{Self: "a", Leader: fakeLeader{nil, "a", true}, Local: s.Heartbeat})
	if !c.heartbeat(t.Context()) || !c.Valid(TTL/2) {
		t.Errorf("state after a heartbeat to itself: %+v", c.State())
	}
	s.Deposed()
	if c.heartbeat(t.Context()) || !c.Valid(0) || !c.Valid(TTL/2) {
		t.Errorf("state after the end of the leader's term: %+v, want the lease still valid", c.State())
	}
	none := NewClient(ClientOptions{Self: "a", Leader: fakeLeader{}})
	if none.heartbeat(t.Context()) || !strings.Contains(none.State().Why, "no leader") {
		t.Errorf("state without a leader: %+v", none.State())
	}
}

type fakeReach struct{ answers map[string]time.Time }

func (f fakeReach) Paths() map[api.NodeID][]string {
	return map[api.NodeID][]string{"b": {"b1", "b2"}, "c": {"c1"}}
}
func (f fakeReach) LastAnswer(_ api.NodeID, path string) time.Time { return f.answers[path] }

func TestProber(t *testing.T) {
	r := fakeReach{map[string]time.Time{}}
	now := Instant(0)
	var last []PathReport
	p := NewProber(r, func(s []PathReport) { last = s }, func() Instant { return now })
	begin := time.Unix(0, 0)
	for i := range 5 {
		now += second
		r.answers["b2"] = begin.Add(time.Duration(i) * time.Second)
		p.check()
	}
	want := []PathReport{{"b", "b1", false}, {"b", "b2", true}, {"c", "c1", false}}
	if len(last) != 3 || last[0] != want[0] || last[1] != want[1] || last[2] != want[2] {
		t.Errorf("got reports %+v, want %+v", last, want)
	}
	if r := p.Relays(); len(r) != 2 || r[0] != "b" {
		t.Errorf("got relays %v, want b first of two", r)
	}
}

func FuzzHeartbeat(f *testing.F) {
	f.Add([]byte(`{"v":1,"node":"b","epoch":0,"bootId":"x","sentAt":5,"sees":[{"node":"c","path":"p","up":true}]}`))
	f.Add([]byte(`{"v":1,"node":"b","epoch":-1}`))
	f.Add([]byte(`{"v":1}{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHeartbeat(b)
		if err != nil {
			return
		}
		g := elected(three...)
		a := g.Receive(101*second, 101*second, 7, h)
		if a.Granted && (h.Epoch != 0 || len(g.nodes) != 3) {
			t.Errorf("heartbeat %+v got answer %+v", h, a)
		}
		for _, v := range g.Verdicts(120 * second) {
			if v.State > Silent { // a single sender counts as one witness
				t.Errorf("heartbeat %+v led to verdict %+v", h, v)
			}
		}
		out, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeHeartbeat(out); err != nil && len(out) <= MaxBody {
			t.Errorf("%s was re-encoded as %s, which does not decode: %v", b, out, err)
		}
	})
}
