package server_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// TestMalformedBodies checks that an invalid body is reported as the client's error,
// with status 400 and without an incident number.
func TestMalformedBodies(t *testing.T) {
	w := newWorld(t)
	image := must(t, ret(client.Of[api.Image](w.op).Create(t.Context(), api.Image{Meta: api.Meta{Name: "sent"}, Spec: api.ImageSpec{Format: "raw"}}))).v
	const create, content = "POST /v1/organizations", "PUT /v1/images/%s/content"
	chunked := func(body string) string { return "Transfer-Encoding: chunked\r\n\r\n" + body }
	whole := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	const cut = true // the client closes its half of the connection
	for name, c := range map[string]struct {
		to, rest string
		want     int
		cut      bool
	}{
		"a chunk whose length is no number": {create, chunked("zz\r\n{}\r\n0\r\n\r\n"), 400, false},
		"a chunk that is longer than said":  {create, chunked("2\r\n{\"meta\":{}}\r\n0\r\n\r\n"), 400, false},
		"a chunk that ends early":           {create, chunked("ffff\r\n{}"), 400, cut},
		"a chunk of too large a length":     {create, chunked("ffffffffffffffffff\r\n{}\r\n0\r\n\r\n"), 400, false},
		"chunks without an end":             {create, chunked("2\r\n{}\r\n"), 400, cut},
		"a body that ends early":            {create, "Content-Length: 1000\r\n\r\n{}", 400, cut},
		"no JSON":                           {create, whole("{"), 400, false},
		"no body":                           {create, whole(""), 400, false},
		"not text":                          {create, whole("\x00\xff\xfe"), 400, false},
		"an image in a malformed chunk":     {fmt.Sprintf(content, image.Meta.ID), chunked("zz\r\nxx\r\n0\r\n\r\n"), 400, false},
		"an image that ends early":          {fmt.Sprintf(content, image.Meta.ID), "Content-Length: 1000\r\n\r\nxx", 400, cut},
		"a good one":                        {create, whole(`{"meta":{"name":"good"}}`), 201, false},
		"a good one in chunks":              {create, chunked("1a\r\n{\"meta\":{\"name\":\"chunks\"}}\r\n0\r\n\r\n"), 201, false},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		patience.Limit(t, time.Minute, conn)
		kind := "application/json"
		if strings.HasPrefix(c.to, "PUT") {
			kind = "application/octet-stream"
		}
		_, _ = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nConnection: close\r\n%s", c.to, w.Token, kind, c.rest)
		// Only in cases that need it: if the client closes its half after a whole
		// request, net/http assumes that it has disconnected and cancels the request.
		if c.cut {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: read the response: %v", name, err)
			continue
		}
		said, _ := io.ReadAll(resp.Body)
		_, _ = resp.Body.Close(), conn.Close()
		if resp.StatusCode != c.want || c.want == 400 && !strings.Contains(string(said), `"code":"invalid"`) {
			t.Errorf("%s: %d %s, want %d", name, resp.StatusCode, said, c.want)
		}
	}
}

func TestStrictTransport(t *testing.T) {
	w := newWorld(t)
	h := server.StrictTransport(w.Server)
	for _, path := range []string{"/v1/healthz", "/v1/nodes", "/nowhere"} {
		for _, over := range []*tls.ConnectionState{nil, {}} {
			r := httptest.NewRequest("GET", path, nil)
			r.TLS = over
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if got := rec.Header().Get("Strict-Transport-Security") != ""; got != (over != nil) {
				t.Errorf("%s, TLS %v: has Strict-Transport-Security = %v, want %v", path, over != nil, got, over != nil)
			}
		}
	}
}
