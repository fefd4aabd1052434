package trace

import (
	"strings"
	"testing"
)

// TestOwn checks that names and rules of another project are not disclosed.
func TestOwn(t *testing.T) {
	whole := testTopology()
	red := Own(whole, "prj-red")
	if len(red.Networks) != 1 || len(red.Ports) != 1 || len(red.FloatingIPs)+len(red.LoadBalancers) != 0 || len(red.SecurityGroups) != 1 || len(whole.Ports) != 7 {
		t.Fatalf("Own for prj-red = %+v, want one network, port and security group, and the whole topology unchanged", red)
	}
	red.Routers[0].External, red.Routers[0].Address4 = "ext", addr("203.0.113.11")
	q := ask(t, "ins-red", "203.0.113.20", "tcp/22") // of blue, which allows only 443
	v, err := Explain(red, q)
	if err != nil || !v.Passes || len(v.Ports) != 0 {
		t.Fatalf("Explain = %+v, %v, want it to pass without ports", v, err)
	}
	if lines := strings.Join(Lines(q, v, nil, ""), "\n"); strings.Contains(lines, "web") || strings.Contains(lines, "group sg-web") {
		t.Errorf("lines disclose blue's objects:\n%s", lines)
	}
	if _, err := Explain(red, ask(t, "ins-red", "ins-web", "tcp/443")); err == nil {
		t.Error("Explain to another project's instance = nil, want an error")
	}
}
