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
			return // does not handle joins
		}
		n.server.HandleJoin(JSON(func(_ context.Context, caller api.NodeID, in greeting) (greeting, error) {
			if caller != "" {
				t.Errorf("got caller %s for a joining node, want none", caller)
			}
			if e := answer.Load(); e != nil {
				return greeting{}, e
			}
			return greeting{in.Name + " by " + string(n.id)}, nil
		}))
	}, nodeA, nodeB, nodeC)
	at := func(id api.NodeID) string { return c.nodes[id].paths[0].address() }
	join := func(token pki.Token) (string, error) {
		var out greeting
		err := Join(t.Context(), token, greeting{"x"}, &out)
		return out.Name, err
	}
	if got, err := join(joinToken(c.ca, at(nodeA))); got != "x by node-00000000000a" || err != nil {
		t.Errorf("join: got %q, error %v", got, err)
	}
	if got, err := join(joinToken(c.ca, "127.0.0.1:1", at(nodeC), at(nodeB))); got != "x by node-00000000000b" || err != nil {
		t.Errorf("join with the first member unreachable and the second not ready: got %q, error %v", got, err)
	}
	_, err := join(joinToken(newCA(t, "basalt"), at(nodeA)))
	var e *api.Error
	if !errors.As(err, &e) || !errors.Is(err, pki.ErrNotPeer) || !strings.Contains(e.Hint, "new token") {
		t.Errorf("token of another cluster: got error %v", err)
	}
	if _, err := join(joinToken(c.ca, "127.0.0.1:1")); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("no member reachable: got error %v, want code unavailable", err)
	}
	answer.Store(api.Errorf(api.CodeForbidden, "the token was used"))
	if _, err := join(joinToken(c.ca, at(nodeA), at(nodeB))); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("used token: got error %v, want code forbidden", err)
	}
	answer.Store(nil)
	if err := Join(t.Context(), joinToken(c.ca, at(nodeA)), greeting{strings.Repeat("x", maxJoin)}, nil); api.CodeOf(err) != api.CodeTooLarge {
		t.Errorf("large request: got error %v, want code too large", err)
	}
	limited := 0
	for range 40 {
		if _, err := join(joinToken(c.ca, at(nodeA))); api.CodeOf(err) == api.CodeRateLimited {
			limited++
		}
	}
	if limited == 0 {
		t.Error("the number of join attempts is not limited")
	}
	eventually(t, "connections of joining nodes closed", func() bool { return len(c.nodes[nodeA].server.in.all()) == 0 })
	if _, err := hello(t.Context(), c.nodes[nodeB], nodeA); err == nil {
		t.Error("call of /hello got no error")
	}
}

// TestJoinBodyLimit checks that the body is limited even if the handler does not
// check its size.
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
	_ = Join(t.Context(), joinToken(c.ca, c.nodes[nodeA].paths[0].address()), greeting{strings.Repeat("x", 4*maxJoin)}, nil)
	<-done
	var large *http.MaxBytesError
	if !errors.As(read, &large) {
		t.Errorf("reading the body: got error %v, want *http.MaxBytesError", read)
	}
}
