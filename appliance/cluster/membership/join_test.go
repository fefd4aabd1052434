package membership

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func self(n int) Self {
	return Self{Node: api.NodeID(fmt.Sprintf("node-00000000000%d", n)), Name: fmt.Sprintf("n%d", n), Version: "v1",
		PeerAddresses: []string{fmt.Sprintf("192.0.2.%d:7481", n)}, APIAddress: fmt.Sprintf("192.0.2.%d:7480", n)}
}

// founded returns the store of a cluster of one node.
func founded(t *testing.T) Store {
	t.Helper()
	dir, s := t.TempDir(), memstore.New()
	if err := Create(dir, "test", self(1), nil, now); err != nil {
		t.Fatal(err)
	}
	r, err := Load(dir)
	if err != nil || r.State != api.SetupMember || !r.Founder || r.Cluster != "test" {
		t.Fatalf("%+v, %v", r, err)
	}
	for range 2 { // as at every start
		if err := WriteFirstObjects(t.Context(), s, dir, r, self(1)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// token creates a token as the API does.
func token(t *testing.T, s Store, expires time.Time) pki.Token {
	t.Helper()
	id := api.NewID(api.KindJoinToken, []byte{1, 2, 3, 4, 5, byte(time.Now().UnixNano())})
	text, hash, err := NewToken(t.Context(), s, api.JoinTokenID(id))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), api.Batch{At: now, Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindJoinToken, ID: id, Name: strings.ReplaceAll(id, "-", ""),
		Data: api.Encode(api.JoinTokenSpec{Hash: hash, ExpiresAt: &expires})}}}); err != nil {
		t.Fatal(err)
	}
	tok, err := pki.ParseToken(text)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func request(t *testing.T, tok pki.Token, who Self) Request {
	t.Helper()
	_, csr, err := pki.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	return Request{Token: tok.ID, Secret: tok.Secret, Format: state.Level, Node: who.Node, Name: who.Name,
		Version: who.Version, PeerAddresses: who.PeerAddresses, APIAddress: who.APIAddress, CSR: csr}
}

var ours = Cluster{Level: state.Level, ID: "c1"}

func TestAdmit(t *testing.T) {
	s := founded(t)
	tok := token(t, s, now.Add(time.Hour))
	for range 2 { // the node repeats the request because the answer was lost
		w, err := Admit(t.Context(), s, ours, request(t, tok, self(2)), now)
		if err != nil {
			t.Fatal(err)
		}
		if w.ID != ours.ID {
			t.Errorf("got cluster ID %q, want %q", w.ID, ours.ID)
		}
		if len(w.Peers) != 2 || w.Peers[self(1).Node][0] != "192.0.2.1:7481" {
			t.Errorf("got peers %v, want both nodes", w.Peers)
		}
	}
	if _, err := Admit(t.Context(), s, ours, request(t, tok, self(3)), now); api.CodeOf(err) != api.CodeForbidden || !strings.Contains(err.Error(), "already used by node "+string(self(2).Node)) {
		t.Errorf("another node with a used token: got error %v", err)
	}
}

func TestAdmitRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*Request)
		at   time.Duration
		code api.Code
		want string
	}{
		{"wrong secret", func(r *Request) { r.Secret += "x" }, 0, api.CodeForbidden, "not valid"},
		{"unknown token", func(r *Request) { r.Token = "join-ffffffffffff" }, 0, api.CodeForbidden, "not valid"},
		{"expired", func(*Request) {}, 2 * time.Hour, api.CodeForbidden, "expired at 2026-11-21T13:00:00Z"},
		{"older version", func(r *Request) { r.Format-- }, 0, api.CodeState, "supports feature levels up to"},
		{"name taken", func(r *Request) { r.Name = "n1" }, 0, api.CodeExists, "a node named n1 already exists"},
		{"id taken", func(r *Request) { r.Node = self(1).Node }, 0, api.CodeExists, "a node with ID"},
		{"no address", func(r *Request) { r.PeerAddresses = nil }, 0, api.CodeInvalid, "peer address"},
		{"bad address", func(r *Request) { r.PeerAddresses = []string{"nowhere"} }, 0, api.CodeInvalid, "HOST:PORT"},
		{"bad name", func(r *Request) { r.Name = "N 2" }, 0, api.CodeInvalid, ""},
		{"bad id", func(r *Request) { r.Node = "../x" }, 0, api.CodeInvalid, "an ID"},
		{"bad CSR", func(r *Request) { r.CSR = []byte("x") }, 0, api.CodeInvalid, "certificate request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := founded(t)
			tok := token(t, s, now.Add(time.Hour))
			r := request(t, tok, self(2))
			c.do(&r)
			if _, err := Admit(t.Context(), s, ours, r, now.Add(c.at)); api.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want code %s and %q", err, c.code, c.want)
			}
			// The refused request has not used the token.
			if _, err := Admit(t.Context(), s, ours, request(t, tok, self(2)), now); err != nil {
				t.Errorf("admit after a refused request: %v", err)
			}
		})
	}
}

func TestOneTokenAtTheSameMoment(t *testing.T) {
	s := founded(t)
	tok := token(t, s, now.Add(time.Hour))
	var wg sync.WaitGroup
	var mu sync.Mutex
	in := 0
	for i := range 8 {
		r := request(t, tok, self(2+i%7))
		r.Node = api.NodeID(fmt.Sprintf("node-0000000000f%d", i))
		r.Name = fmt.Sprintf("x%d", i)
		wg.Go(func() {
			if _, err := Admit(t.Context(), s, ours, r, now); err == nil {
				mu.Lock()
				in++
				mu.Unlock()
			} else if api.CodeOf(err) != api.CodeForbidden {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if in != 1 {
		t.Errorf("%d nodes were admitted with one token, want 1", in)
	}
}

func TestRenewal(t *testing.T) {
	s := founded(t)
	_, csr, err := pki.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Sign(t.Context(), s, self(1).Node, csr, now); err != nil {
		t.Error(err)
	}
	if _, err := Sign(t.Context(), s, self(2).Node, csr, now); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("signing for a node that is not a member: got error %v, want code not found", err)
	}
}

func TestRecord(t *testing.T) {
	dir := t.TempDir()
	if r, err := Load(dir); err != nil || r.State != api.SetupUnconfigured {
		t.Fatalf("%+v, %v", r, err)
	}
	want := Record{State: api.SetupMember, Cluster: "c", Node: "node-1", Peers: map[api.NodeID][]string{"node-2": {"192.0.2.2:7481"}}}
	if err := want.Save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Load(dir)
	if err != nil || got.Node != want.Node || got.Peers["node-2"][0] != "192.0.2.2:7481" {
		t.Errorf("got record %+v, error %v", got, err)
	}
	want.State = "Strange"
	if err := want.Save(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("loading a damaged record: got error %v", err)
	}
}

// A token without an address of a member could not be used.
func TestNoTokenWithoutAddresses(t *testing.T) {
	s := founded(t)
	nodes, err := listNodes(t.Context(), s)
	if err != nil || len(nodes) != 1 {
		t.Fatalf("nodes = %+v (error %v), want one", nodes, err)
	}
	if _, err := s.Apply(t.Context(), api.Batch{At: now, Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindNode, ID: nodes[0].Meta.ID, Name: nodes[0].Meta.Name,
		Expect: api.AnyRevision, Data: api.Encode(api.NodeSpec{})}}}); err != nil {
		t.Fatal(err)
	}
	if text, _, err := NewToken(t.Context(), s, "tok-000000000001"); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("token of a cluster without addresses = %q, error %v; want %s", text, err, api.CodeUnavailable)
	}
}
