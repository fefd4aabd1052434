package appgateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// loaded is a guest that some requests occupy for as long as they last.
type loaded struct {
	arrived   chan struct{} // one for each request that occupies it
	over      chan struct{} // closed when those end
	now, most atomic.Int64  // requests at a time
}

func newLoaded() *loaded {
	return &loaded{arrived: make(chan struct{}, 1000), over: make(chan struct{})}
}

func (l *loaded) serve(w http.ResponseWriter, r *http.Request) {
	n := l.now.Add(1)
	defer l.now.Add(-1)
	for m := l.most.Load(); n > m && !l.most.CompareAndSwap(m, n); m = l.most.Load() {
	}
	switch r.URL.Path {
	case "/endless":
		l.arrived <- struct{}{}
		_, _ = io.Copy(w, zeros{})
	case "/unread":
		l.arrived <- struct{}{}
		select {
		case <-l.over: // the server does not notice the end of a request whose body it does not read
		case <-r.Context().Done():
		}
	default:
		_, _ = io.Copy(w, r.Body)
	}
}

// overOneConnection makes the browser use one HTTP/2 connection, with a window for each
// response that is soon full, and returns the number of connections made so far.
func (b *bench) overOneConnection() *atomic.Int64 {
	t := b.browser.Transport.(*http.Transport)
	var made atomic.Int64
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		made.Add(1)
		return dial(ctx, network, address)
	}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP2(true)
	t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 64 << 20}
	b.want("the first request", http.StatusOK, "GET", home, "", "Authorization", "Bearer "+token)
	return &made
}

// occupy starts n requests that last until the test ends, and waits for them to arrive.
func (b *bench) occupy(l *loaded, n int, method, path string, body func() io.Reader) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var open sync.WaitGroup
	b.Cleanup(func() { cancel(); close(l.over); open.Wait() })
	for range n {
		open.Go(func() {
			r, err := http.NewRequestWithContext(ctx, method, home+path, body())
			if err != nil {
				b.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+token)
			resp, err := b.browser.Do(r)
			if err != nil {
				if ctx.Err() == nil {
					b.Errorf("%s %s: %v", method, path, err)
				}
				return
			}
			defer resp.Body.Close()
			<-ctx.Done() // the body is not read
		})
	}
	for range n {
		<-l.arrived
	}
}

// TestSlowReaders checks that responses that are not read do not delay others of the same
// connection.
func TestSlowReaders(t *testing.T) {
	l := newLoaded()
	b := start(t, usual, l.serve)
	made := b.overOneConnection()
	b.occupy(l, 100, "GET", "endless", func() io.Reader { return http.NoBody })
	for range 100 {
		if text, _ := b.want("beside slow readers", http.StatusOK, "POST", home+"echo", "hello", "Authorization", "Bearer "+token); text != "hello" {
			t.Fatalf("echo of hello = %q", text)
		}
	}
	if n := made.Load(); n != 1 {
		t.Errorf("the client made %d connections, want one", n)
	}
}

// TestUnreadUploads checks that uploads that an instance does not read do not delay others
// of the same connection.
func TestUnreadUploads(t *testing.T) {
	l := newLoaded()
	b := start(t, usual, l.serve)
	made := b.overOneConnection()
	b.occupy(l, 6, "POST", "unread", func() io.Reader { return zeros{} }) // as many as a browser sends at a time
	// An upload is stuck when it has filled the buffers of the guest and of the kernel.
	long := strings.Repeat("x", 4<<20)
	for range 10 {
		if text, _ := b.want("beside unread uploads", http.StatusOK, "POST", home+"echo", long, "Authorization", "Bearer "+token); text != long {
			t.Fatalf("echo of %d bytes has %d", len(long), len(text))
		}
	}
	if n := made.Load(); n != 1 {
		t.Errorf("the client made %d connections, want one", n)
	}
}

// frames is an HTTP/2 connection of a client that does not obey the protocol.
type frames struct {
	*http2.Framer
	*testing.T
	conn   net.Conn
	header bytes.Buffer
	encode *hpack.Encoder
}

func (b *bench) frames() *frames {
	b.Helper()
	c, err := tls.Dial("tcp", b.address, &tls.Config{RootCAs: b.browser.Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: strings.TrimSuffix(strings.TrimPrefix(home, "https://"), "/"), NextProtos: []string{"h2"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	patience.Limit(b, time.Minute, c)
	f := &frames{Framer: http2.NewFramer(c, c), T: b.T, conn: c}
	f.encode = hpack.NewEncoder(&f.header)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		b.Fatal(err)
	}
	if err := f.WriteSettings(); err != nil {
		b.Fatal(err)
	}
	return f
}

// request returns the header block of a request, with more fields.
func (f *frames) request(path string, more ...hpack.HeaderField) []byte {
	f.header.Reset()
	host := strings.TrimSuffix(strings.TrimPrefix(home, "https://"), "/")
	for _, h := range append([]hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: host}, {Name: ":path", Value: path},
		{Name: "authorization", Value: "Bearer " + token}}, more...) {
		_ = f.encode.WriteField(h)
	}
	return f.header.Bytes()
}

// until reads frames until one satisfies done, or the connection ends.
func (f *frames) until(done func(http2.Frame) bool) error {
	for {
		fr, err := f.ReadFrame()
		if err != nil || done(fr) {
			return err
		}
	}
}

// TestRapidReset checks that requests that a client starts and resets at once do not
// exceed the limit of a connection, and do not keep others from being served.
func TestRapidReset(t *testing.T) {
	l := newLoaded()
	b := start(t, usual, l.serve)
	f := b.frames()
	go func() { _ = f.until(func(http2.Frame) bool { return false }) }()
	for i := range uint32(20_000) {
		id := 2*i + 1
		if f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.request("/unread"), EndStream: true, EndHeaders: true}) != nil || f.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
			break // the gateway has closed the connection
		}
		select {
		case <-l.arrived:
		default:
		}
	}
	b.want("beside it", http.StatusOK, "GET", home, "", "Authorization", "Bearer "+token)
	if most := l.most.Load(); most > int64(usual.streams)+1 {
		t.Errorf("the guest had %d requests at a time, want at most the connection's %d", most, usual.streams)
	}
}

// TestHeaderFloods checks that the gateway does not collect headers without a limit: in
// CONTINUATION frames that do not end (CVE-2023-45288), and from a table (an HPACK bomb).
func TestHeaderFloods(t *testing.T) {
	b := start(t, usual, new(seen).serve)
	t.Run("continuation", func(t *testing.T) {
		f := b.frames()
		go func() { _ = f.until(func(http2.Frame) bool { return false }) }()
		block := f.request("/", hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 12<<10), Sensitive: true})
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block})
		sent := len(block)
		for ; err == nil && sent < 256<<20; sent += len(block) {
			f.header.Reset()
			_ = f.encode.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 12<<10), Sensitive: true})
			block = f.header.Bytes()
			err = f.WriteContinuation(1, false, block)
		}
		if err == nil {
			t.Errorf("the gateway accepted %d bytes of a header, want the connection closed at about %d", sent, usual.headers)
		}
	})
	t.Run("table", func(t *testing.T) {
		f := b.frames()
		entry := hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 3<<10)}
		fields := make([]hpack.HeaderField, 10_000) // of one byte each after the first: 30 MiB
		for i := range fields {
			fields[i] = entry
		}
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.request("/", fields...), EndStream: true, EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
		f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		status := ""
		err := f.until(func(fr http2.Frame) bool {
			switch fr := fr.(type) {
			case *http2.MetaHeadersFrame:
				status = fr.PseudoValue("status")
				return true
			case *http2.RSTStreamFrame, *http2.GoAwayFrame:
				return true
			}
			return false
		})
		if err != nil && !errors.Is(err, io.EOF) || status != "" && status != "431" {
			t.Errorf("request with a header of 30 MiB: status %q, error %v; want 431 or the stream closed", status, err)
		}
	})
	b.want("after them", http.StatusOK, "GET", home, "", "Authorization", "Bearer "+token)
}

// TestSilentClient checks that a client that has requests open and does not answer is
// disconnected, so that they end.
func TestSilentClient(t *testing.T) {
	few := usual
	few.pingTime, few.silentTime = time.Millisecond, time.Millisecond
	ended := make(chan struct{})
	b := start(t, few, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(ended)
	})
	f := b.frames()
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.request("/"), EndStream: true, EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	<-ended
}
