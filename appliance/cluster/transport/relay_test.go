package transport

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestRelay checks that a heartbeat is delivered through a third node when the
// direct path fails.
func TestRelay(t *testing.T) {
	c := newCluster(t, 1, func(n *node) {
		greets(n)
		n.server.Handle("POST /heartbeat", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, 200, []string{string(n.id), string(Caller(r.Context())), string(Origin(r)), r.Header.Get("Content-Type")})
		}))
		n.server.Handle("POST /refuse", JSON(func(context.Context, api.NodeID, greeting) (any, error) {
			return nil, api.Errorf(api.CodeConflict, "no")
		}))
		n.server.Handle("POST /huge", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte(strings.Repeat("x", maxRelayed+1)))
		}))
		if n.id != nodeC {
			n.server.AllowRelay(func(method, path string) bool {
				return method == "POST" && (path == "/heartbeat" || path == "/refuse" || path == "/huge" || strings.HasPrefix(path, "/relay/"))
			})
		}
	}, nodeA, nodeB, nodeC)
	a, ctx := c.nodes[nodeA], t.Context()
	a.book.Set(nodeC, "127.0.0.1:1") // A does not reach C, but B does
	if err := a.client.Call(ctx, nodeC, "POST", "/heartbeat", greeting{}, nil); api.CodeOf(err) != api.CodeUnavailable {
		t.Fatalf("direct call: got error %v, want code unavailable", err)
	}
	var got []string
	if err := a.client.CallVia(ctx, nodeB, nodeC, "POST", "/heartbeat", greeting{}, &got); err != nil {
		t.Fatal(err)
	}
	if want := []string{string(nodeC), string(nodeB), string(nodeA), "application/json"}; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got relayed request %v, want %v", got, want)
	}
	if err := a.client.Call(ctx, nodeB, "POST", "/heartbeat", greeting{}, &got); err != nil || got[2] != string(nodeA) {
		t.Errorf("direct call: got request %v, error %v", got, err)
	}
	code := func(via, to api.NodeID, method, path string, in any) api.Code {
		return api.CodeOf(a.client.CallVia(ctx, via, to, method, path, in, nil))
	}
	for name, c := range map[string]struct{ got, want api.Code }{
		"a refusal comes back":    {code(nodeB, nodeC, "POST", "/refuse", greeting{}), api.CodeConflict},
		"a path not allowed":      {code(nodeB, nodeC, "POST", "/hello", greeting{}), api.CodeForbidden},
		"a method not allowed":    {code(nodeB, nodeC, "DELETE", "/heartbeat", greeting{}), api.CodeForbidden},
		"a path in disguise":      {code(nodeB, nodeC, "POST", "/heartbeat/../hello", greeting{}), api.CodeInternal}, // 307 of ServeMux
		"a better disguise":       {api.CodeOf(a.client.Call(ctx, nodeB, "POST", "/relay/"+string(nodeC)+"/relay/x%2F..%2F..%2Fhello?method=POST", greeting{}, nil)), api.CodeForbidden},
		"no member":               {code(nodeB, "node-x", "POST", "/heartbeat", greeting{}), api.CodeNotFound},
		"relayed twice":           {code(nodeB, nodeA, "POST", "/relay/"+string(nodeC)+"/heartbeat", greeting{}), api.CodeForbidden},
		"a large request":         {code(nodeB, nodeC, "POST", "/heartbeat", greeting{strings.Repeat("x", maxRelayed)}), api.CodeTooLarge},
		"a large answer":          {code(nodeB, nodeC, "POST", "/huge", greeting{}), api.CodeTooLarge},
		"a node without the rule": {code2(ctx, c.nodes[nodeB], nodeC, nodeA), api.CodeForbidden},
	} {
		if c.got != c.want {
			t.Errorf("%s: got code %s, want %s", name, c.got, c.want)
		}
	}
	c.nodes[nodeC].paths[0].set("cut")
	if got := code(nodeB, nodeC, "POST", "/heartbeat", greeting{}); got != api.CodeUnavailable {
		t.Errorf("relay without a path to the node: got code %s, want unavailable", got)
	}
}

func code2(ctx context.Context, from *node, via, to api.NodeID) api.Code {
	return api.CodeOf(from.client.CallVia(ctx, via, to, "POST", "/heartbeat", greeting{}, nil))
}
