package trace

import (
	"strings"
	"testing"
)

// What another project has is told to nobody: neither its names nor its rules.
func TestOwn(t *testing.T) {
	whole := town()
	red := Own(whole, "prj-red")
	if len(red.Networks) != 1 || len(red.Ports) != 1 || len(red.FloatingIPs)+len(red.LoadBalancers) != 0 || len(red.SecurityGroups) != 1 || len(whole.Ports) != 7 {
		t.Fatalf("%+v", red)
	}
	red.Routers[0].External, red.Routers[0].Address4 = "ext", addr("203.0.113.11")
	q := ask(t, "ins-red", "203.0.113.20", "tcp/22") // blue's, which lets only 443
	v, err := Explain(red, q)
	if err != nil || !v.Passes || len(v.Ports) != 0 {
		t.Fatalf("%+v, %v", v, err)
	}
	if lines := strings.Join(Lines(q, v, nil, ""), "\n"); strings.Contains(lines, "web") || strings.Contains(lines, "group sg-web") {
		t.Error(lines)
	}
	if _, err := Explain(red, ask(t, "ins-red", "ins-web", "tcp/443")); err == nil {
		t.Error("another project's instance is known")
	}
}
