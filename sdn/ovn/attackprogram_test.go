package ovn_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/frame"
)

// attackProgram runs the program of sdn/attack with a guest's own card and
// kernel: the neighbor must receive the allowed frames and nothing else, a
// guest of another organization nothing, and only the gateway may answer.
// There is no metadata service here.
func attackProgram(t *testing.T, topology sdn.Topology, a, b, x *guest) {
	program := built.Program(t, "sdn/attack")
	n := networkOf(topology, api.NetworkID("net-red1"))
	at := func(mac string, four, six netip.Addr) map[string]any {
		return map[string]any{"mac": mac, "four": four, "six": six}
	}
	of := func(g *guest) map[string]any { return at(g.port.MAC, g.port.Address4, g.port.Address6) }
	config, err := json.Marshal(map[string]any{
		"card": "eth0", "self": of(a), "neighbour": of(b), "foreign": []any{of(x)}, "metadata": "0a:00:00:00:00:02", "unserved": true,
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
		t.Errorf("%d attacks were tried, want at least 60", len(all))
	}
	for _, line := range all {
		var r struct {
			Attack, Bad, Good, Answer string
			Allowed                   bool
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("decode %q: %v", line, err)
		}
		switch {
		case r.Bad == "" && r.Allowed && r.Answer == "" && strings.Contains(r.Attack, "the gateway"):
			t.Errorf("%s: an allowed probe has no answer, so this test proves nothing", r.Attack)
		case r.Bad == "" && !r.Allowed && r.Answer != "":
			t.Errorf("%s: answer = %s, want none", r.Attack, r.Answer)
		case r.Bad == "":
		case !b.sees([]byte(r.Good), 3*time.Second):
			t.Errorf("%s: the allowed frame did not arrive, so this test proves nothing", r.Attack)
		case b.saw([]byte(r.Bad)) && !strings.HasPrefix(r.Attack, "elsewhere: "):
			t.Errorf("%s: the neighbor received the attack, want it dropped", r.Attack)
		case x.saw([]byte(r.Bad)) || x.saw([]byte(r.Good)):
			t.Errorf("%s: a guest of another organization received a frame, want none", r.Attack)
		}
	}
}
