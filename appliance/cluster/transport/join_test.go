package transport

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
)

func joinToken(ca pki.CA, peers ...string) pki.Token {
	return must(pki.NewToken("basalt", must(ca.Fingerprint()), peers, "jtk-000000000001"))
}

func TestJoin(t *testing.T) {
	var answer atomic.Pointer[api.Error]
	c := newCluster(t, 1, func(n *node) {
		if n.id == nodeC {
			return // never ready
		}
		n.server.HandleJoin(JSON(func(_ context.Context, caller api.NodeID, in greeting) (greeting, error) {
			if caller != "" {
				t.Errorf("a joiner is called %s", caller)
			}
			if e := answer.Load(); e != nil {
				return greeting{}, e
			}
			return greeting{in.Name + " by " + string(n.id)}, nil
		}))
	}, nodeA, nodeB, nodeC)
	at := func(id api.NodeID) string { return c.nodes[id].roads[0].address() }
	join := func(token pki.Token) (string, error) {
		var out greeting
		err := Join(t.Context(), token, greeting{"x"}, &out)
		return out.Name, err
	}
	if got, err := join(joinToken(c.ca, at(nodeA))); got != "x by node-00000000000a" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := join(joinToken(c.ca, "127.0.0.1:1", at(nodeC), at(nodeB))); got != "x by node-00000000000b" || err != nil {
		t.Errorf("the first is away, the second not ready: %q, %v", got, err)
	}
	_, err := join(joinToken(newCA(t, "basalt"), at(nodeA)))
	var e *api.Error
	if !errors.As(err, &e) || !errors.Is(err, pki.ErrNotPeer) || !strings.Contains(e.Hint, "new token") {
		t.Errorf("a token of another cluster: %v", err)
	}
	if _, err := join(joinToken(c.ca, "127.0.0.1:1")); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("nobody there: %v", err)
	}
	answer.Store(api.Errorf(api.CodeForbidden, "the token was used"))
	if _, err := join(joinToken(c.ca, at(nodeA), at(nodeB))); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("a used token: %v", err)
	}
	answer.Store(nil)
	if err := Join(t.Context(), joinToken(c.ca, at(nodeA)), greeting{strings.Repeat("x", maxJoin)}, nil); api.CodeOf(err) != api.CodeTooLarge {
		t.Errorf("a large request: %v", err)
	}
	limited := 0
	for range 40 {
		if _, err := join(joinToken(c.ca, at(nodeA))); api.CodeOf(err) == api.CodeRateLimited {
			limited++
		}
	}
	if limited == 0 {
		t.Error("anybody may try as often as he likes")
	}
	eventually(t, "joiners' connections are closed", func() bool { return len(c.nodes[nodeA].server.in.all()) == 0 })
	if _, err := hello(t.Context(), c.nodes[nodeB], nodeA); err == nil {
		t.Error("there is no /hello here")
	}
}

// The body is bounded for handlers that do not look, too.
func TestJoinBodyLimit(t *testing.T) {
	var read error
	done := make(chan struct{})
	c := newCluster(t, 1, func(n *node) {
		n.server.HandleJoin(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(done)
			b := make([]byte, 2*maxJoin)
			for read == nil {
				_, read = r.Body.Read(b)
			}
		}))
	}, nodeA)
	_ = Join(t.Context(), joinToken(c.ca, c.nodes[nodeA].roads[0].address()), greeting{strings.Repeat("x", 4*maxJoin)}, nil)
	<-done
	var large *http.MaxBytesError
	if !errors.As(read, &large) {
		t.Errorf("the handler read on until %v", read)
	}
}
