package transport

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

func TestCall(t *testing.T) {
	logged := &bytes.Buffer{}
	c := newCluster(t, 1, func(n *node) {
		greets(n)
		n.server.log = slog.New(slog.NewTextHandler(logged, nil))
		n.server.Handle("GET /empty", JSON(func(context.Context, api.NodeID, struct{}) (struct{}, error) { return struct{}{}, nil }))
		n.server.Handle("POST /refuse", JSON(func(context.Context, api.NodeID, struct{}) (any, error) {
			return nil, api.Errorf(api.CodeConflict, "no").WithHint("yes").At("spec.x")
		}))
		n.server.Handle("POST /break", JSON(func(context.Context, api.NodeID, struct{}) (any, error) {
			return nil, errors.New("secret path /x")
		}))
		n.server.Handle("POST /panic", JSON(func(context.Context, api.NodeID, struct{}) (any, error) { panic("oh") }))
		n.server.Handle("GET /odd", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) }))
		n.server.Handle("GET /huge", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range maxCall/1024 + 1 {
				w.Write([]byte(strings.Repeat("1", 1024)))
			}
		}))
	}, nodeA, nodeB)
	a := c.nodes[nodeA]
	ctx := t.Context()
	for _, to := range []api.NodeID{nodeB, nodeA} { // a node also reaches itself
		if got, err := hello(ctx, a, to); got != "node-00000000000a says hello" || err != nil {
			t.Errorf("call to %s: got %q, error %v", to, got, err)
		}
	}
	if err := a.client.Call(ctx, nodeB, "GET", "/empty?x=1", nil, nil); err != nil {
		t.Error(err)
	}
	var e *api.Error
	if err := a.client.Call(ctx, nodeB, "POST", "/refuse", nil, nil); !errors.As(err, &e) || !reflect.DeepEqual(*e, api.Error{Code: api.CodeConflict, Message: "no", Hint: "yes", Field: "spec.x"}) {
		t.Errorf("refused call: got error %v", err)
	}
	for _, path := range []string{"/odd", "/huge"} {
		if err := a.client.Call(ctx, nodeB, "GET", path, nil, nil); err == nil || errors.As(err, &e) {
			t.Errorf("call of %s: got error %v, want one that is not an *api.Error", path, err)
		}
	}
	if err := a.client.Call(ctx, nodeB, "POST", "/break", nil, nil); err == nil || errors.As(err, &e) || !strings.Contains(err.Error(), "secret path") {
		t.Errorf("internal error of the other node: got error %v, want its text and no *api.Error", err)
	}
	if err := a.client.Call(ctx, nodeB, "POST", "/panic", nil, nil); err == nil {
		t.Error("call of a handler that panics got no error")
	}
	eventually(t, "the handler has returned", func() bool { return len(c.nodes[nodeB].server.in.all()) <= 1 })
	if !strings.Contains(logged.String(), "panic=oh") {
		t.Errorf("the panic was not logged: %s", logged)
	}
	if err := a.client.Call(ctx, nodeB, "GET", "/nowhere", nil, nil); err == nil {
		t.Error("call of an unknown path got no error")
	}
	if err := a.client.Call(ctx, nodeC, "GET", "/empty", nil, nil); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("call to an unknown node: got error %v, want code unavailable", err)
	}
	big := greeting{strings.Repeat("x", maxCall)}
	if err := a.client.Call(ctx, nodeB, "POST", "/hello", big, nil); api.CodeOf(err) != api.CodeTooLarge {
		t.Errorf("call that is too large: got error %v, want code too large", err)
	}
	resp, err := a.client.Do(ctx, nodeB, must(http.NewRequest("POST", "/hello", strings.NewReader("{"))))
	if err != nil || resp.StatusCode != 400 {
		t.Errorf("incomplete message: got response %v, error %v, want status 400", resp, err)
	}
	resp.Body.Close()
	late, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := hello(late, a, nodeB); !errors.Is(err, context.Canceled) {
		t.Errorf("call with a canceled context: got error %v, want context.Canceled", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestPaths checks that calls continue when paths fail and recover, and that the
// first path that works is used.
func TestPaths(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	c := newCluster(t, 3, greets, nodeA, nodeB)
	a, paths := c.nodes[nodeA], c.nodes[nodeB].paths
	call := func(why string) {
		t.Helper()
		a.client.Disconnect(nodeB) // force a new connection
		ctx, cancel := patience.Context(t.Context(), time.Minute)
		defer cancel()
		if _, err := hello(ctx, a, nodeB); err != nil {
			t.Errorf("call with %s: %v", why, err)
		}
	}
	used := func() string {
		for _, x := range a.client.out.all() {
			return x.address
		}
		return ""
	}
	call("all paths open")
	paths[0].set("cut")
	call("the first path cut")
	paths[1].set("silent")
	call("the second path silent")
	if used() != paths[2].address() {
		t.Errorf("the connection uses %s, want %s", used(), paths[2].address())
	}
	health := a.book.Paths(nodeB)
	if health[0].Up() || health[0].LastError == "" || !health[2].Up() || health[2].RTT <= 0 {
		t.Errorf("unexpected health of the paths: %+v", health)
	}
	paths[2].set("cut")
	a.client.Disconnect(nodeB)
	_, err := hello(t.Context(), a, nodeB)
	if api.CodeOf(err) != api.CodeUnavailable || !strings.Contains(err.Error(), paths[0].address()) {
		t.Errorf("call without a working path: got error %v, want code unavailable", err)
	}
	for _, r := range paths {
		r.set("")
	}
	call("all paths open again")
	// A ping would find that the path works.
	if _, err := a.client.Probe(t.Context(), nodeB, paths[0].address()); err != nil {
		t.Error(err)
	}
	call("the first path up again")
	if used() != paths[0].address() {
		t.Errorf("the connection uses %s, want the first path", used())
	}
}

func TestOrder(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	paths := []PathHealth{
		{Address: "failed", LastOK: ago(time.Minute), LastFailure: ago(time.Second)},
		{Address: "new"},
		{Address: "failed long ago", LastFailure: ago(time.Minute)},
		{Address: "back", LastOK: ago(time.Second), LastFailure: ago(2 * time.Second)},
		{Address: "never worked", LastFailure: ago(time.Second)},
	}
	want := "new, failed long ago, back, failed, never worked"
	if got := strings.Join(order(paths, now), ", "); got != want {
		t.Errorf("got order %s, want %s", got, want)
	}
}

func TestBook(t *testing.T) {
	var b AddressBook
	changed := b.Changed()
	b.Replace(map[api.NodeID][]string{nodeA: {"x:1", "y:1", "x:1"}, nodeB: {"z:1"}})
	<-changed
	b.answered(nodeA, "y:1", time.Now(), time.Second)
	changed = b.Changed()
	b.Set(nodeA, "x:1", "y:1")
	select {
	case <-changed:
		t.Error("changed was closed although no address changed")
	default:
	}
	b.Set(nodeA, "y:1", "x:1")
	<-changed
	if p := b.Paths(nodeA); len(p) != 2 || p[0].RTT != time.Second || p[1].RTT != 0 {
		t.Errorf("health of the paths was lost: %+v", p)
	}
	b.Set(nodeB)
	if n := b.Nodes(); len(n) != 1 || len(b.Paths(nodeB)) != 0 {
		t.Errorf("book contains nodes %v, want only the first", n)
	}
	b.Set(nodeB, strings.Split(strings.Repeat("a:1 ", 3)+"b:1 c:1 d:1 e:1 f:1 g:1 h:1 i:1", " ")...)
	if n := len(b.Paths(nodeB)); n != maxPaths {
		t.Errorf("got %d paths, want %d", n, maxPaths)
	}
}

// TestRotationLeavesConnections checks that a call that is in progress when the
// identity changes succeeds, and that its connection is used for at most one more
// call.
func TestRotationLeavesConnections(t *testing.T) {
	arrived, goOn := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	c := newCluster(t, 1, func(n *node) {
		n.server.Handle("POST /wait", JSON(func(context.Context, api.NodeID, struct{}) (struct{}, error) {
			if first.CompareAndSwap(false, true) {
				close(arrived)
				<-goOn
			}
			return struct{}{}, nil
		}))
	}, nodeA, nodeB)
	done := make(chan error, 1)
	call := func() error {
		return c.nodes[nodeA].client.Call(context.Background(), nodeB, "POST", "/wait", nil, nil)
	}
	go func() { done <- call() }()
	<-arrived
	b := c.nodes[nodeB]
	if err := b.certificates.ReplaceBundle(must(pki.AddToBundle(b.certificates.Bundle(), newCA(t, "basalt").CertPEM))); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := errors.Join(<-done, call()); err != nil {
		t.Error(err)
	}
	eventually(t, "the old connection is closed", func() bool { return len(b.server.in.all()) == 0 })
}

// TestRotationUnderTraffic checks that no call fails while keys and CAs are
// replaced.
func TestRotationUnderTraffic(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	c := newCluster(t, 2, greets, nodeA, nodeB)
	ctx, stop := context.WithCancel(t.Context())
	var calls, fails atomic.Int64
	var talking sync.WaitGroup
	for i := range 6 {
		from, to := c.nodes[nodeA], nodeB
		if i%2 == 1 {
			from, to = c.nodes[nodeB], nodeA
		}
		talking.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				if k%5 == 0 {
					from.client.pool.CloseIdleConnections()
				}
				if _, err := hello(context.WithoutCancel(ctx), from, to); err != nil {
					fails.Add(1)
					t.Errorf("call %d: %v", k, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	more := func() {
		t.Helper()
		target := calls.Load() + 50
		eventually(t, "more calls", func() bool { return calls.Load() > target || fails.Load() > 0 })
	}
	for range 3 {
		next := newCA(t, "basalt")
		more()
		for _, n := range c.nodes {
			if err := n.certificates.ReplaceBundle(must(pki.AddToBundle(n.certificates.Bundle(), next.CertPEM))); err != nil {
				t.Fatal(err)
			}
		}
		more()
		for _, n := range c.nodes {
			err := n.certificates.Renew(t.Context(), func(_ context.Context, csr []byte) (pki.Issued, error) {
				cert, err := next.Sign(csr, pki.NodeIdentity{Cluster: "basalt", Node: n.id, Name: "x"}, time.Now(), 0)
				return pki.Issued{CertPEM: cert}, err
			})
			if err != nil {
				t.Fatal(err)
			}
			more()
		}
		for _, n := range c.nodes {
			if err := n.certificates.ReplaceBundle(next.CertPEM); err != nil {
				t.Fatal(err)
			}
			more()
		}
		for _, n := range c.nodes {
			n.server.Recheck()
		}
	}
	stop()
	talking.Wait()
	t.Logf("%d calls succeeded", calls.Load())
	// No connection that was made under the first CA remains.
	for _, n := range c.nodes {
		for _, x := range append(n.client.out.all(), n.server.in.all()...) {
			state := x.ConnectionState()
			if _, err := n.certificates.NodeOf(&state); err != nil {
				t.Errorf("a connection remains that is not trusted: %v", err)
			}
		}
	}
}
