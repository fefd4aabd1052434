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

// fullNode is a service whose networks listen on the loopback interface, each
// with a guest.
type fullNode struct {
	*Service
	at    map[api.NetworkID]net.Addr
	begun int
}

func newFullNode(t *testing.T) *fullNode {
	n := &fullNode{Service: NewService(Config{Source: everybody{}}), at: map[api.NetworkID]net.Addr{}}
	n.swept = true // without a switch there is nothing to remove
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
			t.Errorf("Close: %v", err)
		}
	})
	return n
}

// everybody is a Source in which every address is an instance of its network.
type everybody struct{}

func (everybody) Lookup(network api.NetworkID, _ netip.Addr) (Instance, bool) {
	return Instance{ID: api.InstanceID("ins-of-" + network)}, true
}

// wantAnswers sends a request in a network as its guest does.
func (n *fullNode) wantAnswers(t *testing.T, network api.NetworkID) {
	t.Helper()
	at := n.at[network]
	if at == nil {
		t.Errorf("network %s has no server, want one", network)
		return
	}
	r, err := http.Get("http://" + at.String() + "/latest/meta-data/instance-id")
	if err != nil {
		t.Errorf("request in network %s: %v", network, err)
		return
	}
	defer r.Body.Close()
	if raw, err := io.ReadAll(r.Body); err != nil || string(raw) != "ins-of-"+string(network) {
		t.Errorf("instance ID in network %s = %q, %v, want ins-of-%s", network, raw, err, network)
	}
}

// TestOneNetworkTooMany checks a node with 513 networks, one more than it
// serves: one project has 510 of them and two have the others, and the 513th
// is added at once or later. The project with the most networks lacks one,
// which the error names, and all others are served; no running network is
// restarted.
func TestOneNetworkTooMany(t *testing.T) {
	network := func(project string, i int) Network {
		return Network{ID: api.NetworkID(fmt.Sprintf("net-%s-%03d", project, i)), Project: api.ProjectID("prj-" + project), CIDR: netip.MustParsePrefix("10.64.0.0/24")}
	}
	var greedy, all []Network
	for i := range MaxNetworks - 2 {
		greedy = append(greedy, network("greedy", i))
	}
	others := []Network{network("amber", 0), network("violet", 0), network("violet", 1)} // before and after it by name
	all = append(append(all, greedy...), others...)
	if len(all) != 513 {
		t.Fatalf("test set-up has %d networks, want 513", len(all))
	}
	wantLeft := func(n *fullNode, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "1 of 513 networks on this node") || !strings.Contains(err.Error(), "prj-greedy") {
			t.Errorf("Apply = %v, want an error about one network of prj-greedy", err)
		}
		if len(n.running) != MaxNetworks {
			t.Errorf("%d networks are served, want %d", len(n.running), MaxNetworks)
		}
		for _, o := range others {
			n.wantAnswers(t, o.ID)
		}
		n.wantAnswers(t, greedy[0].ID)
	}

	n := newFullNode(t)
	wantLeft(n, n.Apply(t.Context(), all))
	begun := n.begun
	wantLeft(n, n.Apply(t.Context(), all)) // no change
	if n.begun != begun {
		t.Errorf("%d networks were restarted, want none", n.begun-begun)
	}

	n = newFullNode(t)
	if err := n.Apply(t.Context(), append(greedy[:len(greedy):len(greedy)], others[:2]...)); err != nil {
		t.Fatal(err)
	}
	begun = n.begun
	wantLeft(n, n.Apply(t.Context(), all)) // the second network of violet gets the last place
	if n.begun != begun+1 {
		t.Errorf("%d networks were started for one more, want 1", n.begun-begun)
	}
}
