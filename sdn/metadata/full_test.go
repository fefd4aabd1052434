package metadata

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// fullNode is a service whose networks are on the loopback, each with a guest.
type fullNode struct {
	*Service
	at    map[api.NetworkID]net.Addr
	begun int
}

func newFullNode(t *testing.T) *fullNode {
	n := &fullNode{Service: NewService(Config{Source: everybody{}}), at: map[api.NetworkID]net.Addr{}}
	n.swept = true // there is no switch
	n.begin = func(_ context.Context, network Network) (*running, error) {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		n.begun++
		n.at[network.ID] = l.Addr()
		r := &running{network: network, server: &http.Server{Handler: NewServer(network.ID, n.config.Source)}, ended: make(chan struct{})} //nolint:gosec // asked by this test only
		go func() { defer close(r.ended); _ = r.server.Serve(limit(l, maxConnections)) }()
		return r, nil
	}
	n.end = func(_ context.Context, r *running) error {
		delete(n.at, r.network.ID)
		err := r.server.Close()
		<-r.ended
		return err
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// everybody who asks is the guest of his network.
type everybody struct{}

func (everybody) Lookup(network api.NetworkID, _ netip.Addr) (Instance, bool) {
	return Instance{ID: api.InstanceID("ins-of-" + network)}, true
}

// wantAnswers asks in a network as its guest does.
func (n *fullNode) wantAnswers(t *testing.T, network api.NetworkID) {
	t.Helper()
	at := n.at[network]
	if at == nil {
		t.Errorf("network %s is not answered", network)
		return
	}
	r, err := http.Get("http://" + at.String() + "/latest/meta-data/instance-id")
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Body.Close()
	if raw, err := io.ReadAll(r.Body); err != nil || string(raw) != "ins-of-"+string(network) {
		t.Errorf("network %s is answered %q, %v", network, raw, err)
	}
}

// A node has 513 networks, one more than it answers: one project has 510 of them and
// two have the others, or the 513th comes when all places are taken. The greedy
// project goes without one, is named, and everybody else is answered; nothing that
// worked is begun anew.
func TestOneNetworkTooMany(t *testing.T) {
	network := func(project string, i int) Network {
		return Network{ID: api.NetworkID(fmt.Sprintf("net-%s-%03d", project, i)), Project: api.ProjectID("prj-" + project), CIDR4: netip.MustParsePrefix("10.64.0.0/24")}
	}
	var greedy, all []Network
	for i := range MaxNetworks - 2 {
		greedy = append(greedy, network("greedy", i))
	}
	others := []Network{network("amber", 0), network("violet", 0), network("violet", 1)} // before and after it by name
	all = append(append(all, greedy...), others...)
	if len(all) != 513 {
		t.Fatalf("%d networks", len(all))
	}
	wantLeft := func(n *fullNode, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "1 of 513 networks on this node") || !strings.Contains(err.Error(), "prj-greedy") {
			t.Errorf("what was left out: %v, want one of prj-greedy", err)
		}
		if len(n.running) != MaxNetworks {
			t.Errorf("%d networks are answered, want %d", len(n.running), MaxNetworks)
		}
		for _, o := range others {
			n.wantAnswers(t, o.ID)
		}
		n.wantAnswers(t, greedy[0].ID)
	}

	n := newFullNode(t)
	wantLeft(n, n.Apply(t.Context(), all))
	begun := n.begun
	wantLeft(n, n.Apply(t.Context(), all)) // again: nothing changes
	if n.begun != begun {
		t.Errorf("%d networks were begun anew", n.begun-begun)
	}

	n = newFullNode(t)
	if err := n.Apply(t.Context(), append(greedy[:len(greedy):len(greedy)], others[:2]...)); err != nil {
		t.Fatal(err)
	}
	begun = n.begun
	wantLeft(n, n.Apply(t.Context(), all)) // the last place is given to violet's second
	if n.begun != begun+1 {
		t.Errorf("%d networks were begun for the one that came", n.begun-begun)
	}
}
