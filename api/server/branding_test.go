package server_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// call sends a request and returns the response's status, headers and body.
func call(t *testing.T, method, url, token, body string) (int, http.Header, []byte) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/json")
	if strings.HasSuffix(url, "/logo") {
		r.Header.Set("Content-Type", "image/png")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, raw
}

// TestBranding checks that everybody may read the branding and operators may write it,
// that concurrent changes conflict, and that the logo is served as a picture only.
func TestBranding(t *testing.T) {
	e := servertest.Start(t, nil)
	at := e.URL + "/v1/branding"
	read := func(raw []byte) (b api.Branding) {
		t.Helper()
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatalf("decode branding %s: %v", raw, err)
		}
		return b
	}
	if status, _, raw := call(t, "GET", at, "", ""); status != 200 || read(raw) != (api.Branding{}) {
		t.Fatalf("branding before any change: %d %s, want 200 and empty", status, raw)
	}
	if status, _, raw := call(t, "PUT", at, e.Token, `{"revision":7,"productName":"Other"}`); status != 409 || !strings.Contains(string(raw), `"code":"conflict"`) {
		t.Errorf("change of revision 7 before any change: %d %s, want 409", status, raw)
	}
	if status, _, _ := call(t, "GET", at+"/logo", "", ""); status != 404 {
		t.Errorf("logo before any upload: %d, want 404", status)
	}
	if status, _, _ := call(t, "PUT", at, "", `{"productName":"x"}`); status != 401 {
		t.Errorf("change without a token: %d, want 401", status)
	}
	status, _, raw := call(t, "PUT", at, e.Token, `{"productName":"Example Cloud","accentColor":"#0b5cad"}`)
	if status != 200 || read(raw).ProductName != "Example Cloud" || read(raw).Revision == 0 {
		t.Fatalf("first change: %d %s, want 200 and the new branding", status, raw)
	}
	if status, _, raw := call(t, "PUT", at, e.Token, `{"productName":"as if it were new"}`); status != 409 {
		t.Errorf("change without the current revision: %d %s, want 409", status, raw)
	}
	if status, _, raw := call(t, "PUT", at, e.Token, `{"accentColor":"#ffcc00"}`); status != 400 || !bytes.Contains(raw, []byte(`"accentColor"`)) {
		t.Errorf("change to an accent color with low contrast: %d %s, want 400", status, raw)
	}

	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 32, 32))); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", `<svg xmlns="http://www.w3.org/2000/svg"/>`, strings.Repeat("x", api.MaxLogoBytes+1)} {
		if status, _, raw := call(t, "PUT", at+"/logo", e.Token, bad); status != 400 {
			t.Errorf("upload of logo %.20q: %d %s, want 400", bad, status, raw)
		}
	}
	status, _, raw = call(t, "PUT", at+"/logo", e.Token, picture.String())
	with := read(raw)
	if status != 200 || with.Logo == "" || with.ProductName != "Example Cloud" {
		t.Fatalf("branding after the logo was uploaded: %d %s, want 200 with a logo and the product name", status, raw)
	}
	status, header, raw := call(t, "GET", at+"/logo", "", "")
	if _, err := png.Decode(bytes.NewReader(raw)); err != nil || status != 200 {
		t.Errorf("logo: status %d, decode error %v; want a PNG", status, err)
	}
	for k, v := range map[string]string{"Content-Type": "image/png", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"} {
		if header.Get(k) != v {
			t.Errorf("header %s of the logo = %q, want %q", k, header.Get(k), v)
		}
	}
	_, _, raw = call(t, "PUT", at, e.Token, `{"revision":`+jsonNumber(with.Revision)+`,"productName":"Other"}`)
	if b := read(raw); b.Logo != with.Logo || b.ProductName != "Other" || b.AccentColor != "" {
		t.Errorf("branding after a change = %s, want the new name, the same logo and no accent color", raw)
	}
	if status, _, raw := call(t, "DELETE", at+"/logo", e.Token, ""); status != 200 || read(raw).Logo != "" || read(raw).ProductName != "Other" {
		t.Errorf("deletion of the logo: %d %s, want 200 without a logo", status, raw)
	}
}

func jsonNumber(n int64) string {
	raw, _ := json.Marshal(n)
	return string(raw)
}

// TestLogoIfMatch checks that a logo has the ETag of its branding, and is replaced and
// deleted only at the revision of If-Match, before the first change too.
func TestLogoIfMatch(t *testing.T) {
	w := newWorld(t)
	var picture, other bytes.Buffer
	for size, to := range map[int]*bytes.Buffer{32: &picture, 48: &other} {
		if err := png.Encode(to, image.NewGray(image.Rect(0, 0, size, size))); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/v1/branding", "/v1/organizations/" + w.acme + "/branding"} {
		t.Run(path, func(t *testing.T) {
			_, header := asked[api.Branding](t, w, 200, "GET", path, "")
			never := header.Get("ETag")
			first, header := asked[api.Branding](t, w, 200, "PUT", path+"/logo", picture.String(), "If-Match", never)
			tag := header.Get("ETag")
			if want := `"` + jsonNumber(first.Revision) + `"`; first.Logo == "" || tag != want || tag == never {
				t.Fatalf("branding with a logo = %+v with ETag %s, want a logo and %s", first, tag, want)
			}
			if status, read, _ := call(t, "GET", w.URL+path+"/logo", w.Token, ""); status != 200 || read.Get("ETag") != tag {
				t.Errorf("logo: %d with ETag %s, want 200 and that of the branding, %s", status, read.Get("ETag"), tag)
			}
			for method, body := range map[string]string{"PUT": picture.String(), "DELETE": ""} {
				for bad, status := range map[string]int{never: 412, "7": 400, `"-1"`: 400} {
					p, _ := asked[api.Problem](t, w, status, method, path+"/logo", body, "If-Match", bad)
					if want := map[int]api.Code{412: api.CodePrecondition, 400: api.CodeInvalid}[status]; p.Code != want || p.Hint == "" {
						t.Errorf("%s of the logo with If-Match %s: %+v, want %s and a hint", method, bad, p, want)
					}
				}
			}
			if now, _ := asked[api.Branding](t, w, 200, "GET", path, ""); now != first {
				t.Errorf("branding after refused changes = %+v, want %+v", now, first)
			}
			asked[api.Branding](t, w, 200, "PUT", path+"/logo", other.String())
			asked[api.Problem](t, w, 412, "DELETE", path+"/logo", "", "If-Match", tag)
			_, header = asked[api.Branding](t, w, 200, "PUT", path+"/logo", picture.String(), "If-Match", "*")
			if now, _ := asked[api.Branding](t, w, 200, "DELETE", path+"/logo", "", "If-Match", header.Get("ETag")); now.Logo != "" {
				t.Errorf("branding after its logo was deleted = %+v, want no logo", now)
			}
		})
	}
}

// TestRevenueIsTheSellers checks that a reseller gets its own revenue, whatever the
// request names.
func TestRevenueIsTheSellers(t *testing.T) {
	w := newWorld(t)
	at := w.URL + "/v1/revenue?from=2026-03-01T00:00:00Z&to=2026-04-01T00:00:00Z"
	for token, want := range map[string]string{
		w.Token: "",
		w.Key(t, api.Meta{Name: "shop", Organization: w.acme}, api.RoleReseller): w.acme,
	} {
		status, _, raw := call(t, "GET", at, token, "")
		var p api.RevenuePage
		if err := json.Unmarshal(raw, &p); err != nil || status != 200 || len(p.Items) != 1 || p.Items[0].Key != want {
			t.Errorf("revenue: %d %s, want one item with key %s", status, raw, want)
		}
	}
	if status, _, raw := call(t, "GET", at+"&by=day", w.Token, ""); status != 400 {
		t.Errorf("revenue by day: %d %s, want 400", status, raw)
	}
}
