package transport

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/basalt-gpu/basalt/api"
)

// someAPI returns an API that reports the requests it receives.
func someAPI(n *node, forward func() http.Handler) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("/v1/show/{rest...}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Node", string(n.id))
		writeJSON(w, 201, []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Authorization"), r.Host, r.Header.Get("X-Forwarded-For")})
	})
	m.HandleFunc("/v1/echo", func(w http.ResponseWriter, r *http.Request) {
		out := http.NewResponseController(w)
		out.EnableFullDuplex()
		w.WriteHeader(200)
		out.Flush()
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(w, "echo "+line)
			out.Flush()
		}
	})
	m.HandleFunc("/v1/console", func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		for {
			kind, data, err := ws.Read(r.Context())
			if err != nil {
				return
			}
			ws.Write(r.Context(), kind, append([]byte("echo "), data...))
		}
	})
	m.HandleFunc("/v1/loop", func(w http.ResponseWriter, r *http.Request) { forward().ServeHTTP(w, r) })
	return m
}

// proxied returns a cluster in which A's API forwards everything to B's.
func proxied(t *testing.T) (*cluster, *httptest.Server) {
	c := newCluster(t, 1, nil, nodeA, nodeB)
	for _, n := range c.nodes {
		n.server.HandleAPI(someAPI(n, func() http.Handler { return n.client.ProxyTo(nodeA) }))
	}
	front := httptest.NewServer(c.nodes[nodeA].client.ProxyTo(nodeB))
	t.Cleanup(front.Close)
	return c, front
}

func TestProxy(t *testing.T) {
	c, front := proxied(t)
	r := must(http.NewRequest("PUT", front.URL+"/v1/show/a%2Fb/c?x=1;y&z=%20", strings.NewReader("body")))
	r.Header.Set("Authorization", "Bearer secret")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got []string
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := []string{"PUT", "/v1/show/a%2Fb/c", "x=1;y&z=%20", "Bearer secret", strings.TrimPrefix(front.URL, "http://"), "127.0.0.1"}
	if strings.Join(got, "|") != strings.Join(want, "|") || resp.StatusCode != 201 || resp.Header.Get("X-Node") != string(nodeB) {
		t.Errorf("got status %d and request\n%v\nwant\n%v", resp.StatusCode, got, want)
	}

	// Both directions stream at the same time.
	body, send := io.Pipe()
	resp, err = http.DefaultClient.Do(must(http.NewRequest("POST", front.URL+"/v1/echo", body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for _, word := range []string{"one\n", "two\n"} {
		io.WriteString(send, word)
		if got, err := lines.ReadString('\n'); got != "echo "+word || err != nil {
			t.Errorf("echo: got %q, error %v", got, err)
		}
	}
	send.Close()

	ws, _, err := websocket.Dial(t.Context(), front.URL+"/v1/console", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {front.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"hello", strings.Repeat("x", 10<<10)} {
		if err := ws.Write(t.Context(), websocket.MessageBinary, []byte(word)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := ws.Read(t.Context()); string(got) != "echo "+word || err != nil {
			t.Errorf("console: got %q, error %v", got, err)
		}
	}
	ws.CloseNow()
	eventually(t, "the console's connection closed", func() bool { return len(c.nodes[nodeB].server.in.all()) <= 2 })
}

func answerOf(t *testing.T, resp *http.Response, err error) *api.Error {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var p api.Problem
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
		t.Fatal(err)
	}
	e := p.AsError()
	if resp.StatusCode != e.Code.HTTPStatus() {
		t.Errorf("error %s has status %d", e.Code, resp.StatusCode)
	}
	return e
}

func TestProxyRefuses(t *testing.T) {
	c, front := proxied(t)
	resp, err := http.Get(front.URL + "/v1/loop") // from A to B, which sends it back to A
	if e := answerOf(t, resp, err); e.Code != api.CodeUnavailable || !strings.Contains(e.Message, "nodes disagree") {
		t.Errorf("loop: got error %v", e)
	}
	r := must(http.NewRequest("GET", front.URL+"/v1/show/x", nil))
	r.Header.Set(forwardedBy, "me") // a client that sets the header only harms itself
	resp, err = http.DefaultClient.Do(r)
	if e := answerOf(t, resp, err); e.Code != api.CodeUnavailable {
		t.Errorf("request that was already forwarded: got error %v, want code unavailable", e)
	}
	c.nodes[nodeB].paths[0].set("cut")
	resp, err = http.Get(front.URL + "/v1/show/x")
	if e := answerOf(t, resp, err); e.Code != api.CodeUnavailable || e.Hint == "" || strings.Contains(e.Error(), string(nodeB)) {
		t.Errorf("unreachable node: got error %v, want one with a hint and without the node's name, which is for operators", e)
	}
}

// TestMembersRequestIsForwarded checks that a member's request counts as forwarded
// regardless of its headers.
func TestMembersRequestIsForwarded(t *testing.T) {
	c := newCluster(t, 1, nil, nodeA, nodeB)
	b := c.nodes[nodeB]
	b.server.HandleAPI(b.client.ProxyTo(nodeA))
	err := c.nodes[nodeA].client.Call(context.Background(), nodeB, "GET", "/api/v1/x", nil, nil)
	if api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("forwarding a member's request: got error %v, want code unavailable", err)
	}
}
