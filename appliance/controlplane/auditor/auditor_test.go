package auditor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/alerts"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// trail is a memory store whose audit log the test writes.
type trail struct {
	*memstore.Store
	events []api.AuditEvent
	parts  int // number of calls of VerifyAudit
}

func newTrail() *trail { return &trail{Store: memstore.New()} }

// add appends n events.
func (s *trail) add(n int, actor string) {
	for range n {
		var last api.AuditEvent
		if len(s.events) > 0 {
			last = s.events[len(s.events)-1]
		}
		s.events = append(s.events, api.AuditEvent{Seq: last.Seq + 1, Actor: actor, Objects: []api.AuditObject{}}.Chain(last.Hash))
	}
}

// VerifyAudit does what the real store's does, which has a test of its own.
func (s *trail) VerifyAudit(_ context.Context, at api.AuditMark, limit int) (api.AuditMark, bool, error) {
	s.parts++
	for _, e := range s.events[at.Seq:] {
		if limit--; limit < 0 {
			return at, true, nil
		}
		if !e.Follows(api.AuditEvent{Seq: at.Seq, Hash: at.Hash}) {
			return at, false, changed("event %d does not follow event %d", e.Seq, at.Seq)
		}
		at = api.AuditMark{Seq: e.Seq, Hash: e.Hash}
	}
	return at, false, nil
}

// fixture is an auditor with a store, and a clock.
type fixture struct {
	t   *testing.T
	s   *trail
	o   Options
	now time.Time
}

func newFixture(t *testing.T, anchors ...Anchor) *fixture {
	w := &fixture{t: t, s: newTrail(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	w.o = Options{Store: w.s, Cluster: "one", Anchors: anchors, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return w.now }}
	return w
}

// once runs one verification, and returns the codes and messages of the resulting
// alerts.
func (w *fixture) once() (codes []api.AlertCode, message string) {
	w.t.Helper()
	w.now = w.now.Add(time.Hour)
	if err := w.o.Once(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	checks, err := api.All[api.AuditCheck](w.t.Context(), w.s, api.ListQuery{Kind: api.KindAuditCheck})
	if err != nil || len(checks) != 1 {
		w.t.Fatalf("audit checks = %+v, %v; want one", checks, err)
	}
	for _, a := range alerts.Of(alerts.State{Audit: checks}, w.now) {
		codes, message = append(codes, a.Code), message+a.Message
	}
	return codes, message
}

func (w *fixture) wants(what, message string, want ...api.AlertCode) {
	w.t.Helper()
	got, said := w.once()
	if !slices.Equal(got, want) || !strings.Contains(said, message) {
		w.t.Errorf("%s: alerts %v, %q; want %v with %q", what, got, said, want, message)
	}
}

// An audit log that is consistent in itself, but differs from the marks outside, is
// detected: changed, truncated, or rewritten. So is one that differs from what the
// store itself remembers.
func TestTrailIsNotWhatIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*trail)
		want   string
	}{
		"written anew":        {func(s *trail) { s.events = nil; s.add(30, "key-2") }, "event 10 has hash"},
		"with another end":    {func(s *trail) { s.events = s.events[:15]; s.add(15, "key-2") }, "event 20 has hash"},
		"with its end cut":    {func(s *trail) { s.events = s.events[:15] }, "it ends with event 15, but event 20 is anchored"},
		"of nothing":          {func(s *trail) { s.events = nil }, "it ends with event 0, but event 10 is anchored"},
		"with a broken event": {func(s *trail) { s.events[3].Actor = "x" }, "event 4 does not follow event 3"},
	} {
		for _, anchored := range []bool{true, false} {
			path := filepath.Join(t.TempDir(), "marks")
			w := newFixture(t)
			nowhere := []api.AlertCode{api.AlertAuditUnanchored}
			if anchored {
				w.o.Anchors, nowhere = []Anchor{file(path)}, nil
			}
			w.wants("nothing yet", "", nowhere...)
			w.s.add(10, "key-1")
			w.wants("ten events", "", nowhere...)
			w.s.add(10, "key-1")
			w.wants("ten more", "", nowhere...)
			w.wants("none more", "", nowhere...)
			c.change(w.s)
			want := c.want
			if !anchored { // the store remembers only the last end
				want = strings.Replace(strings.Replace(want, "event 10 has", "event 20 has", 1), "event 10 is", "event 20 is", 1)
			}
			wrong := append([]api.AlertCode{api.AlertAuditChanged}, nowhere...)
			w.wants(name, want, wrong...)
			w.wants(name+", still", want, wrong...)
			if raw, _ := os.ReadFile(path); anchored && strings.Count(string(raw), "\n") != 2 {
				t.Errorf("%s: stored marks = %s, want two lines", name, raw)
			}
		}
	}
}

// Marks of another cluster are ignored, and so is a truncated line; a file that cannot
// be used raises an alert, which ends when it can be used again.
func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	foreign, err := json.Marshal(Mark{"two", time.Time{}, api.AuditMark{Seq: 5, Hash: "another"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(foreign, "\n{\"clus"...), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newFixture(t, file(path))
	w.wants("a foreign mark", "")
	w.s.add(2, "key-1")
	w.wants("after a line that was cut off", "")
	if kept, err := file(path).Kept(t.Context()); err != nil || len(kept) != 2 || kept[1].Seq != 2 {
		t.Errorf("kept marks = %v, %v; want two, the last of event 2", kept, err)
	}
	w.o.Anchors = []Anchor{file("/proc/nowhere/marks")}
	w.s.add(1, "key-1")
	w.wants("no such folder", "/proc/nowhere", api.AlertAuditUnanchored)
	w.o.Anchors = []Anchor{file(filepath.Join(t.TempDir(), "marks"))}
	w.wants("a folder", "")
	kept, err := w.o.Anchors[0].Kept(t.Context())
	if err != nil || len(kept) != 1 || kept[0].Seq != 3 || kept[0].Cluster != "one" {
		t.Errorf("kept marks = %v, %v; want one of event 3 and cluster one", kept, err)
	}
	if err := os.WriteFile(path, []byte("what\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.o.Anchors = []Anchor{file(path)}
	w.wants("no marks", "not a valid mark", api.AlertAuditUnanchored)
}

// A leader without an anchor raises an alert, until it has one.
func TestNowhere(t *testing.T) {
	w := newFixture(t)
	w.wants("no events", "no anchor is configured", api.AlertAuditUnanchored)
	w.s.add(2, "key-1")
	w.wants("two events", "no anchor is configured", api.AlertAuditUnanchored)
	place := file(filepath.Join(t.TempDir(), "marks"))
	w.o.Anchors = []Anchor{place}
	w.wants("a file", "")
	if kept, err := place.Kept(t.Context()); err != nil || len(kept) != 1 || kept[0].Seq != 2 { // although there is no new event
		t.Errorf("kept marks = %v, %v; want one of event 2", kept, err)
	}
}

// Long logs are verified in parts, with other marks in between.
func TestParts(t *testing.T) {
	w := newFixture(t, file(filepath.Join(t.TempDir(), "marks")))
	w.s.add(part+1, "key-1")
	w.wants("two parts", "")
	w.s.add(part/2, "key-1")
	w.wants("a mark in the middle", "")
	w.s.parts = 0
	w.wants("again", "")
	if w.s.parts < 3 || w.s.parts > 5 {
		t.Errorf("calls of VerifyAudit = %d, want 3 to 5", w.s.parts)
	}
}

// A syslog and a URL receive each new mark; a receiver that refuses it raises an alert.
func TestSyslogAndAddress(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var got []Mark
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m Mark
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || r.Method != http.MethodPost {
			t.Errorf("request with method %s: %v, want a POST of a mark", r.Method, err)
		}
		got = append(got, m)
		w.WriteHeader(status)
	}))
	defer s.Close()
	var anchors []Anchor
	for _, text := range []string{"syslog:udp://" + conn.LocalAddr().String(), s.URL + "/secret"} {
		a, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		anchors = append(anchors, a)
	}
	w := newFixture(t, anchors...)
	w.s.add(2, "key-1")
	w.wants("two events", "")
	w.wants("none more", "")
	if len(got) != 1 || got[0].Seq != 2 || got[0].Hash != w.s.events[1].Hash {
		t.Errorf("posted marks = %v, want one of event 2", got)
	}
	line := make([]byte, 2000)
	patience.Limit(t, time.Minute, conn)
	n, _, err := conn.ReadFrom(line)
	if want := fmt.Sprintf(`"seq":2,"hash":"%s"`, w.s.events[1].Hash); err != nil || !strings.Contains(string(line[:n]), want) || !strings.Contains(string(line[:n]), "basalt-audit") {
		t.Errorf("syslog line = %q, %v; want it to contain %s", line[:n], err, want)
	}
	status = http.StatusForbidden
	w.s.add(1, "key-1")
	w.wants("it refuses", "responded with status 403", api.AlertAuditUnanchored)
	status = http.StatusNoContent
	w.wants("it takes it", "")
	if len(got) != 3 {
		t.Errorf("posted marks = %v, want three", got)
	}
	w.now = w.now.Add(48 * time.Hour)
	checks, err := api.All[api.AuditCheck](t.Context(), w.s, api.ListQuery{Kind: api.KindAuditCheck})
	if a := alerts.Of(alerts.State{Audit: checks}, w.now); err != nil || len(a) != 1 || a[0].Code != api.AlertAuditUnanchored {
		t.Errorf("alerts after two days without a verification = %v, %v; want one for it", a, err)
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"", "x", "file:", "file:marks", "syslog", "syslog:x", "syslog:udp://host", "syslog:http://host:1", "ftp://host/", "https://", "http:///path"} {
		if a, err := Parse(bad); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", bad, a)
		}
	}
}
