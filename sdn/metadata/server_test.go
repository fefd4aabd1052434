package metadata

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

type table map[api.NetworkID]map[netip.Addr]Instance

func (t table) Lookup(network api.NetworkID, addr netip.Addr) (Instance, bool) {
	i, ok := t[network][addr]
	return i, ok
}

var (
	web = Instance{ID: "ins-web", Name: "web", Hostname: "web.blue.internal", Project: "prj-blue", Flavor: "small", Node: "n1", Cluster: "home",
		MAC: "52:54:00:00:00:01", Address4: netip.MustParseAddr("10.64.0.5"), Address6: netip.MustParseAddr("fd00::5"),
		Keys: []string{"ssh-ed25519 AAAA a@b", "ssh-ed25519 BBBB c@d"}, UserData: []byte("#cloud-config\n\x00")}
	other = Instance{ID: "ins-secret", Name: "secret", Project: "prj-red", Address4: netip.MustParseAddr("10.64.0.5"), UserData: []byte("password: red")}
	both  = table{"net-blue": {web.Address4: web}, "net-red": {other.Address4: other, netip.MustParseAddr("10.64.0.6"): other}}
)

func ask(s *Server, method, path, from string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://169.254.169.254"+path, nil)
	r.RemoteAddr = from
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestAnswers(t *testing.T) {
	s := NewServer("net-blue", both)
	for path, want := range map[string]string{
		"/":                                 "1.0\n2009-04-04\n2016-09-02\n2018-09-24\n2021-03-23\nlatest",
		"/latest":                           "meta-data/\nuser-data",
		"/latest/meta-data/":                "ami-launch-index\nhostname\ninstance-id\ninstance-type\nipv6\nlocal-hostname\nlocal-ipv4\nmac\nplacement/\npublic-keys/",
		"/latest/meta-data/instance-id":     "ins-web",
		"/2009-04-04/meta-data/instance-id": "ins-web",
		"/latest/meta-data/hostname":        "web.blue.internal",
		"/latest/meta-data/local-ipv4":      "10.64.0.5",
		"/latest/meta-data/placement/":      "availability-zone\nregion",
		"/latest/meta-data/placement/availability-zone": "n1",
		"/latest/meta-data/public-keys/":                "0=key-0\n1=key-1",
		"/latest/meta-data/public-keys/0/":              "openssh-key",
		"/latest/meta-data/public-keys/1/openssh-key":   "ssh-ed25519 BBBB c@d",
		"/latest/user-data":                             "#cloud-config\n\x00",
		"/openstack/latest/":                            "meta_data.json\nnetwork_data.json\nvendor_data.json\nuser_data",
		"/openstack/2018-08-27/user_data":               "#cloud-config\n\x00",
		"/openstack/latest/vendor_data.json":            "{}",
	} {
		if w := ask(s, "GET", path, "10.64.0.5:1234"); w.Code != 200 || w.Body.String() != want {
			t.Errorf("GET %s = %d %q, want 200 %q", path, w.Code, w.Body, want)
		}
	}
	var meta struct {
		UUID, Hostname string
		PublicKeys     map[string]string `json:"public_keys"`
		Project        string            `json:"project_id"`
	}
	w := ask(s, "GET", "/openstack/latest/meta_data.json", "10.64.0.5:1")
	if err := json.Unmarshal(w.Body.Bytes(), &meta); err != nil || meta.UUID != "ins-web" || meta.Hostname != "web.blue.internal" || len(meta.PublicKeys) != 2 || meta.Project != "prj-blue" {
		t.Errorf("meta_data.json = %+v, %v, want ins-web, web.blue.internal, two keys and prj-blue", meta, err)
	}
	if w := ask(s, "HEAD", "/latest/user-data", "10.64.0.5:1"); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "15" {
		t.Errorf("HEAD of user-data = %d %q %v, want 200, no body and Content-Length 15", w.Code, w.Body, w.Header())
	}
}

func TestRefusals(t *testing.T) {
	s := NewServer("net-blue", both)
	for name, c := range map[string]struct {
		method, path, from string
		header             []string
		want               int
	}{
		"nobody's address":        {"GET", "/latest/user-data", "10.64.0.6:1", nil, 404}, // an address of another network
		"no address":              {"GET", "/", "nowhere", nil, 400},
		"no such thing":           {"GET", "/latest/meta-data/iam", "10.64.0.5:1", nil, 404},
		"no such version":         {"GET", "/1999-01-01/meta-data/", "10.64.0.5:1", nil, 404},
		"dots":                    {"GET", "/latest/meta-data/../user-data", "10.64.0.5:1", nil, 404},
		"post":                    {"POST", "/latest/user-data", "10.64.0.5:1", nil, 405},
		"put elsewhere":           {"PUT", "/latest/user-data", "10.64.0.5:1", nil, 405},
		"through a proxy":         {"GET", "/latest/user-data", "10.64.0.5:1", []string{"X-Forwarded-For", "1.2.3.4"}, 403},
		"token through a proxy":   {"PUT", tokenPath, "10.64.0.5:1", []string{"X-Forwarded-For", "1.2.3.4", ttlHeader, "60"}, 403},
		"token for how long":      {"PUT", tokenPath, "10.64.0.5:1", nil, 400},
		"token for too long":      {"PUT", tokenPath, "10.64.0.5:1", []string{ttlHeader, "21601"}, 400},
		"a made-up token":         {"GET", "/", "10.64.0.5:1", []string{tokenHeader, "xyz"}, 401},
		"an empty token":          {"GET", "/", "10.64.0.5:1", []string{tokenHeader, ""}, 401},
		"long":                    {"GET", "/" + strings.Repeat("x", maxPath), "10.64.0.5:1", nil, 414},
		"mapped address is known": {"GET", "/", "[::ffff:10.64.0.5]:1", nil, 200},
	} {
		if w := ask(s, c.method, c.path, c.from, c.header...); w.Code != c.want {
			t.Errorf("%s: response = %d %q, want %d", name, w.Code, w.Body, c.want)
		}
	}
}

func TestToken(t *testing.T) {
	s := NewServer("net-red", both)
	now := time.Unix(1000, 0)
	s.tokens.now = func() time.Time { return now }
	w := ask(s, "PUT", tokenPath, "10.64.0.5:1", ttlHeader, "60")
	token := w.Body.String()
	if w.Code != 200 || w.Header().Get(ttlHeader) != "60" || token == "" {
		t.Fatalf("PUT of a token = %d %q, TTL %q, want 200, a token and 60", w.Code, token, w.Header().Get(ttlHeader))
	}
	get := func(s *Server, token string) int {
		return ask(s, "GET", "/latest/meta-data/instance-id", "10.64.0.5:1", tokenHeader, token).Code
	}
	if got := get(s, token); got != 200 {
		t.Errorf("GET with the token = %d, want 200", got)
	}
	if got := get(NewServer("net-red", both), token); got != 401 {
		t.Errorf("GET with the token of another server = %d, want 401", got)
	}
	if s.tokens.good(token, web.ID) {
		t.Error("the token of one instance is valid for another, want invalid")
	}
	now = now.Add(60 * time.Second)
	if got := get(s, token); got != 401 {
		t.Errorf("GET with an expired token = %d, want 401", got)
	}
}

// FuzzRequest checks that for any request a guest gets nothing of another's,
// and that nothing panics.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/latest/meta-data/public-keys/0/openssh-key", "10.64.0.5:9", "")
	f.Add("PUT", "/latest/api/token", "10.64.0.5:9", "60")
	f.Add("GET", "/openstack/latest/meta_data.json", "[::ffff:10.64.0.5%eth0]:9", "AAAA")
	f.Add("GET", "//latest//meta-data/..//", "10.64.0.6:9", "\x00")
	f.Fuzz(func(t *testing.T, method, path, from, header string) {
		s := NewServer("net-blue", both)
		r := &http.Request{Method: method, RemoteAddr: from, Header: http.Header{tokenHeader: {header}, "X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {header}}}
		r.URL = httptest.NewRequest("GET", "http://x/", nil).URL
		r.URL.Path = path
		for _, with := range []bool{true, false} {
			if !with {
				r.Header.Del(tokenHeader)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if body := w.Body.String(); strings.Contains(body, "ins-secret") || strings.Contains(body, "password") {
				t.Errorf("%s %q from %q returned another instance's data: %q", method, path, from, body)
			}
			if w.Code == 200 && method != "GET" && method != "HEAD" && method != "PUT" {
				t.Errorf("method %q = 200, want an error", method)
			}
		}
	})
}
