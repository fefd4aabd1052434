package appgateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/test/kit/testcert"
)

const (
	demo   = api.InstanceID("ins-4f9c2a7be01d")
	holder = "ses-000000000001"
	token  = "bslt_key-000000000001_secret"
)

// plain is a sealer that does not encrypt.
type plain struct{}

func (plain) Seal(_ context.Context, s string) (string, error) { return "sealed " + s, nil }
func (plain) Open(_ context.Context, s string) (string, error) {
	text, ok := strings.CutPrefix(s, "sealed ")
	if !ok {
		return "", errors.New("it is not sealed")
	}
	return text, nil
}

// directory is a fake that admits one holder and one token to demo.
type directory struct {
	mu      sync.Mutex
	refuse  error
	end     []context.CancelFunc
	entered int
	asked   int
}

func (d *directory) Admit(_ context.Context, who string, to api.InstanceID, _ string) (Access, error) {
	return d.admit(who == holder, to)
}

func (d *directory) AdmitToken(_ context.Context, text string, to api.InstanceID, _ string) (Access, error) {
	return d.admit(text == token, to)
}

func (d *directory) admit(known bool, to api.InstanceID) (Access, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	switch {
	case d.refuse != nil:
		return Access{}, d.refuse
	case !known:
		return Access{}, api.Errorf(api.CodeUnauthenticated, "the API key is not valid")
	case to != demo:
		return Access{}, api.Errorf(api.CodeNotFound, "instance %s does not exist", to)
	}
	return Access{Instance: demo, Name: "demo", Node: "node-1"}, nil
}

func (d *directory) While(ctx context.Context, _ Access) (context.Context, context.CancelFunc, error) {
	ctx, cancel := context.WithCancel(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end = append(d.end, cancel)
	return ctx, cancel, nil
}

func (d *directory) Entered(context.Context, Access, string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entered++
	return nil
}

// endAll revokes all rights.
func (d *directory) endAll(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = why
	for _, end := range d.end {
		end()
	}
}

func (d *directory) counts() (asked, entered int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked, d.entered
}

// guestDialer connects to a server that replaces the guest.
type guestDialer struct{ address string }

func (g guestDialer) Dial(ctx context.Context, node api.NodeID, instance api.InstanceID, port uint16) (net.Conn, error) {
	if node != "node-1" || instance != demo || port != 8888 {
		return nil, fmt.Errorf("dial %s on %s, port %d", instance, node, port)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", g.address)
}

// bench is a running gateway with a guest and a browser.
type bench struct {
	*testing.T
	g         *Gateway
	directory *directory
	browser   *http.Client // with cookies
	now       func(time.Time)
	address   string
}

func start(t *testing.T, l limits, guest http.HandlerFunc) *bench {
	t.Helper()
	behind := httptest.NewServer(guest)
	t.Cleanup(behind.Close)
	return startAt(t, l, behind.Listener.Addr().String())
}

func startAt(t *testing.T, l limits, guest string) *bench {
	t.Helper()
	var mu sync.Mutex
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	b := &bench{T: t, directory: &directory{}, now: func(at time.Time) { mu.Lock(); defer mu.Unlock(); now = at }}
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.g = newGateway(ctx, Options{Domain: "apps.example.com", Port: 443, Keys: NewKeys(memstore.New(), plain{}), Directory: b.directory, Dialer: guestDialer{guest},
		Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }}, l)
	b.address = listener.Addr().String()
	files := testcert.Write(t, t.TempDir(), "*.apps.example.com", 1)
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		served <- b.g.Serve(ctx, listener, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}, b.g)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Errorf("Serve: got %v, want %v", err, context.Canceled)
		}
	})
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: files.Roots}, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	jar, _ := cookiejar.New(nil)
	b.browser = &http.Client{Transport: transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return b
}

const home = "https://8888-4f9c2a7be01d.apps.example.com/"

// send sends a request, and returns the status, body and header of the response.
func (b *bench) send(method, url, body string, header ...string) (int, string, http.Header) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := b.browser.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

func (b *bench) want(what string, status int, method, url, body string, header ...string) (string, http.Header) {
	b.Helper()
	got, text, h := b.send(method, url, body, header...)
	if got != status {
		b.Fatalf("%s: got status %d (%.200q), want %d", what, got, text, status)
	}
	return text, h
}

// link returns the pass of a link to a port of demo.
func (b *bench) link(port uint16) string {
	b.Helper()
	url, _, err := b.g.Link(b.Context(), holder, demo, port)
	if err != nil {
		b.Fatal(err)
	}
	_, pass, _ := strings.Cut(url, "#")
	return pass
}

func (b *bench) enter() {
	b.Helper()
	b.want("enter", http.StatusNoContent, "POST", home+".basalt/enter", b.link(8888))
}

// seen records the last request that the guest received.
type seen struct {
	mu   sync.Mutex
	last *http.Request
	set  []string // cookies that the guest sets
}

func (s *seen) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = r.Clone(context.Background())
	for _, c := range s.set {
		w.Header().Add("Set-Cookie", c)
	}
	w.Header().Set("Alt-Svc", `h3="evil.example:443"`)
	_, _ = io.WriteString(w, "hello from the guest")
}

func (s *seen) request() *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// TestVisit checks that a link lets a browser in, and that what is exchanged
// between browser and gateway does not reach the guest.
func TestVisit(t *testing.T) {
	s := &seen{set: []string{"app=1; Path=/x; Domain=apps.example.com; Partitioned", visitCookie + "=mine; Path=/", "=" + visitCookie + "=mine", "plain=2"}}
	b := start(t, usual, s.serve)
	b.want("without a visit", http.StatusUnauthorized, "GET", home, "")
	url, ends, err := b.g.Link(t.Context(), holder, demo, 8888)
	if err != nil || !strings.HasPrefix(url, home+".basalt/enter#") || !ends.Equal(time.Date(2026, 3, 1, 12, 1, 0, 0, time.UTC)) {
		t.Fatalf("link: got %s until %s, %v", url, ends, err)
	}
	entrance, h := b.want("the entrance", http.StatusOK, "GET", url, "")
	if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(entrance, `<script nonce="`) {
		t.Errorf("entrance: got policy %q of %s", csp, entrance)
	}
	b.enter()
	if s.request() != nil {
		t.Fatalf("the guest received %s, want nothing of the gateway's own paths", s.request().URL)
	}
	text, h := b.want("visit", http.StatusOK, "GET", home+"lab?x=1", "", "Cookie", "own=3", "Authorization", "token its-own")
	r := s.request()
	if text != "hello from the guest" || r.Host != "8888-4f9c2a7be01d.apps.example.com" || r.URL.String() != "/lab?x=1" || r.Header.Get("X-Forwarded-Proto") != "https" || r.Header.Get("Authorization") != "token its-own" {
		t.Errorf("got %q for /lab?x=1; the guest received %s of host %s with %v", text, r.URL, r.Host, r.Header)
	}
	if got := r.Header.Get("Cookie"); !strings.Contains(got, "own=3") || strings.Contains(got, "basalt") {
		t.Errorf("the guest received cookies %q, want its own only", got)
	}
	if got, want := h["Set-Cookie"], []string{"app=1; Path=/x; Partitioned", "plain=2"}; !slices.Equal(got, want) || h.Get("Alt-Svc") != "" {
		t.Errorf("the browser got cookies %q and Alt-Svc %q, want %q and none", got, h.Get("Alt-Svc"), want)
	}
	if asked, entered := b.directory.counts(); asked != 1 || entered != 1 {
		t.Errorf("the directory was asked %d times and recorded %d visits, want one each", asked, entered)
	}
}

// TestPasses checks that a pass is valid for one port of one instance, for one use,
// and for a limited time.
func TestPasses(t *testing.T) {
	b := start(t, usual, new(seen).serve)
	pass := b.link(8888)
	b.want("a pass of another port", http.StatusForbidden, "POST", home+".basalt/enter", b.link(9999))
	b.want("rubbish", http.StatusForbidden, "POST", home+".basalt/enter", "rubbish")
	b.want("a long one", http.StatusBadRequest, "POST", home+".basalt/enter", strings.Repeat("x", maxPass+1))
	b.want("another site's page", http.StatusBadRequest, "POST", home+".basalt/enter", pass, "Sec-Fetch-Site", "same-site")
	b.want("a pass that enters as a visit", http.StatusUnauthorized, "GET", home, "", "Cookie", visitCookie+"="+pass)
	none := strings.Join(append(strings.Split(pass, ".")[:2], ""), ".")
	b.want("without a signature", http.StatusForbidden, "POST", home+".basalt/enter", none)
	b.now(time.Date(2026, 3, 1, 12, 1, 1, 0, time.UTC))
	b.want("after a minute", http.StatusForbidden, "POST", home+".basalt/enter", pass)
	b.enter()
	b.want("a visit", http.StatusOK, "GET", home, "")
	b.now(time.Date(2026, 3, 2, 0, 1, 2, 0, time.UTC))
	b.want("after twelve hours", http.StatusUnauthorized, "GET", home, "")
}

// TestAPIKeys checks that programs are admitted by an API key, which the guest does
// not receive.
func TestAPIKeys(t *testing.T) {
	s := new(seen)
	b := start(t, usual, s.serve)
	b.want("a wrong key", http.StatusUnauthorized, "GET", home, "", "Authorization", "Bearer bslt_key-2_wrong")
	b.want("a key", http.StatusOK, "POST", home+"v1/completions", "{}", "Authorization", "Bearer "+token, "Sec-Fetch-Site", "cross-site")
	if got := s.request().Header.Get("Authorization"); got != "" {
		t.Errorf("the guest received Authorization %q, want none", got)
	}
	b.want("a key beside the app's own", http.StatusOK, "GET", home, "", KeyHeader, "Bearer "+token, "Authorization", "Bearer of-the-app")
	if h := s.request().Header; h.Get(KeyHeader) != "" || h.Get("Authorization") != "Bearer of-the-app" {
		t.Errorf("the guest received header %v, want only the app's own Authorization", h)
	}
	b.want("another instance", http.StatusNotFound, "GET", "https://8888-00000000000f.apps.example.com/", "", "Authorization", "Bearer "+token)
}

// TestOtherOrigins checks that requests of other sites' pages are not admitted by
// the browser's cookie.
func TestOtherOrigins(t *testing.T) {
	s := new(seen)
	b := start(t, usual, s.serve)
	b.enter()
	for _, c := range []struct {
		what   string
		method string
		header []string
		status int
	}{
		{"its own page", "POST", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"typed", "GET", []string{"Sec-Fetch-Site", "none"}, 200},
		{"a link", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"a form of another site", "POST", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"a frame", "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"another instance's script", "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}, 403},
		{"an old browser, its own page", "POST", []string{"Origin", strings.TrimSuffix(home, "/")}, 200},
		{"an old browser, another instance", "POST", []string{"Origin", "https://1-00000000000f.apps.example.com"}, 403},
		{"an old browser, no origin", "POST", []string{"Origin", "null"}, 403},
		{"a program with the cookie", "POST", nil, 200},
	} {
		if got, text, _ := b.send(c.method, home, "", c.header...); got != c.status {
			t.Errorf("%s: got status %d (%.100q), want %d", c.what, got, text, c.status)
		}
	}
}

// echo is a guest that sends back what it receives over a WebSocket.
func echo(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = c.CloseNow() }()
	for {
		kind, text, err := c.Read(r.Context())
		if err != nil || c.Write(r.Context(), kind, text) != nil {
			return
		}
	}
}

// socket opens a WebSocket to the guest, and checks that it carries messages.
func (b *bench) socket(h http.Header) *websocket.Conn {
	b.Helper()
	c, resp, err := websocket.Dial(b.Context(), "wss"+strings.TrimPrefix(home, "https"), &websocket.DialOptions{HTTPClient: b.browser, HTTPHeader: h})
	if err != nil {
		b.Fatalf("dial the WebSocket: %v (response %v)", err, resp)
	}
	b.Cleanup(func() { _ = c.CloseNow() })
	if err := c.Write(b.Context(), websocket.MessageText, []byte("hello")); err != nil {
		b.Fatal(err)
	}
	if _, text, err := c.Read(b.Context()); err != nil || string(text) != "hello" {
		b.Fatalf("echo of hello = %q, error %v", text, err)
	}
	return c
}

// TestWebSocket checks that a WebSocket is forwarded, and ends with the right to
// it.
func TestWebSocket(t *testing.T) {
	b := start(t, usual, echo)
	c := b.socket(http.Header{"Authorization": {"Bearer " + token}})
	b.directory.endAll(api.Errorf(api.CodeUnauthenticated, "the API key is not valid"))
	if _, text, err := c.Read(t.Context()); err == nil {
		t.Errorf("read after the right had ended = %q, want an error", text)
	}
	b.want("a request after it", http.StatusUnauthorized, "GET", home, "", "Authorization", "Bearer "+token)
}

// TestWebSocketEndsWithVisit checks that a WebSocket does not outlast the pass of its
// visit.
func TestWebSocketEndsWithVisit(t *testing.T) {
	b := start(t, usual, echo)
	b.enter()
	b.now(time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC).Add(-3 * time.Second)) // 3 s before the end
	c := b.socket(http.Header{"Origin": {strings.TrimSuffix(home, "/")}})
	if _, text, err := c.Read(t.Context()); err == nil {
		t.Errorf("read after the end of the visit = %q, want an error", text)
	}
}

// TestNoAnswer checks that for an app that does not answer yet a browser gets a
// page that reloads, and a program gets one line.
func TestNoAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	b := startAt(t, usual, address)
	text, _ := b.want("a browser", http.StatusBadGateway, "GET", home, "", "Authorization", "Bearer "+token, "Accept", "text/html,*/*")
	if !strings.Contains(text, "demo does not answer on port 8888") || !strings.Contains(text, `http-equiv="refresh" content="5"`) {
		t.Errorf("page: got %s, want the instance, the port, and a reload after 5 s", text)
	}
	text, _ = b.want("a program", http.StatusBadGateway, "GET", home, "", "Authorization", "Bearer "+token)
	if strings.Contains(text, "<") || !strings.Contains(text, "demo does not answer on port 8888") {
		t.Errorf("text: got %q, want one line", text)
	}
	b.directory.endAll(errors.New("the disk of the node is broken"))
	if text, _ := b.want("what is not for users", http.StatusInternalServerError, "GET", home, "", "Authorization", "Bearer "+token); strings.Contains(text, "disk") {
		t.Errorf("text of an internal error = %q, want nothing of the cause", text)
	}
}

// TestLimits checks that no visit and no holder can exceed its limit.
func TestLimits(t *testing.T) {
	l := usual
	l.ofVisit, l.ofHolder, l.visitIdle = 2, 1, time.Hour
	hold, inside := make(chan struct{}), make(chan struct{}, 2)
	b := start(t, l, func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-hold
	})
	var open sync.WaitGroup
	for range 2 {
		open.Go(func() { b.send("GET", home, "", "Authorization", "Bearer "+token) })
		<-inside
	}
	b.want("a third request", http.StatusTooManyRequests, "GET", home, "", "Authorization", "Bearer "+token)
	b.want("another instance with the same key", http.StatusTooManyRequests, "GET", "https://8888-00000000000f.apps.example.com/", "", "Authorization", "Bearer "+token)
	close(hold)
	open.Wait()
	b.want("when they have ended", http.StatusOK, "GET", home, "", "Authorization", "Bearer "+token)
}

// TestVisitsEnd checks that a visit without requests ends, and that its resources
// are released.
func TestVisitsEnd(t *testing.T) {
	l := usual
	l.visitIdle = time.Nanosecond
	b := start(t, l, new(seen).serve)
	for range 3 {
		b.want("a request", http.StatusOK, "GET", home, "", "Authorization", "Bearer "+token)
	}
	for { // until the timer of the last one has run
		b.g.visits.mu.Lock()
		n := len(b.g.visits.all) + len(b.g.visits.held)
		b.g.visits.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestEndedVisit checks that a request after the end of a right begins a new visit, and does
// not belong to the one that has ended.
func TestEndedVisit(t *testing.T) {
	v := newVisits(t.Context(), usual)
	admit := func(whole context.Context) (Access, context.Context, context.CancelFunc, error) {
		ctx, end := context.WithCancel(whole)
		return Access{}, ctx, end, nil
	}
	for range 1000 {
		x, leave, err := v.enter(visitKey{instance: demo}, admit)
		if err != nil {
			t.Fatal(err)
		}
		leave()
		x.end()
		next, leave, err := v.enter(visitKey{instance: demo}, admit)
		if err != nil {
			t.Fatal(err)
		}
		if next == x {
			t.Fatal("the visit after the end of the right is the ended one, want a new one")
		}
		leave()
		next.end()
	}
}
