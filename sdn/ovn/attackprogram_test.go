package ovn_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/frame"
)

// The program of sdn/attack, with a guest's own card and kernel: the neighbour
// has what is honest and nothing else, another tenant has nothing, and nobody
// answers but the gateway. There is no metadata here.
func TestAttackProgram(t *testing.T) {
	w := newWorld(t)
	w.apply(t, sdn.Topology{Cluster: "story"}) // waits until the databases have their leaders
	topology := story()
	w.apply(t, topology)
	g := map[string]*guest{}
	for _, name := range []string{"a", "b", "x"} {
		p := portOf(topology, name)
		on := slices.IndexFunc(w.nodes, func(n *node) bool { return n.id == p.Nodes[0] })
		g[name] = w.boot(t, w.nodes[on], p).address(t, networkOf(topology, p.Network))
	}
	a, b, x := g["a"], g["b"], g["x"]
	program := filepath.Join(t.TempDir(), "attack")
	build := exec.Command("go", "build", "-o", program, "../attack")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	n := networkOf(topology, api.NetworkID("net-red1"))
	at := func(mac string, four, six netip.Addr) map[string]any {
		return map[string]any{"mac": mac, "four": four, "six": six}
	}
	of := func(g *guest) map[string]any { return at(g.port.MAC, g.port.Address4, g.port.Address6) }
	config, err := json.Marshal(map[string]any{
		"card": "eth0", "self": of(a), "neighbour": of(b), "foreign": []any{of(x)}, "metadata": "0a:00:00:00:00:02",
		"gateway": at(routerMAC(t, a, n.Gateway4), n.Gateway4, n.Gateway6), "hosts": []netip.Addr{frame.IP("172.31.7.1"), frame.IP("203.0.113.1")}, "ports": []int{22},
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("ip", "netns", "exec", a.ns, program)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(config)), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(all) < 60 {
		t.Errorf("only %d attacks were tried", len(all))
	}
	for _, line := range all {
		var r struct {
			Attack, Bad, Good, Answer string
			Allowed                   bool
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		switch {
		case r.Bad == "" && r.Allowed && r.Answer == "" && strings.Contains(r.Attack, "the gateway"):
			t.Errorf("%s: what is allowed has no answer: the test says nothing", r.Attack)
		case r.Bad == "" && !r.Allowed && r.Answer != "":
			t.Errorf("%s: answered: %s", r.Attack, r.Answer)
		case r.Bad == "":
		case !b.sees([]byte(r.Good), 3*time.Second):
			t.Errorf("%s: what is allowed does not arrive: the test says nothing", r.Attack)
		case b.saw([]byte(r.Bad)) && !strings.HasPrefix(r.Attack, "elsewhere: "):
			t.Errorf("%s: the neighbour has it", r.Attack)
		case x.saw([]byte(r.Bad)) || x.saw([]byte(r.Good)):
			t.Errorf("%s: another tenant has it", r.Attack)
		}
	}
}
