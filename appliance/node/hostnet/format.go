package hostnet

import (
	"fmt"
	"strings"
)

// Format formats a declaration as a file that Parse accepts, to be edited later.
func Format(n *Network) []byte {
	var b strings.Builder
	b.WriteString("version: 1\n")
	section(&b, "cards", len(n.Cards), func(i int) []string {
		c := n.Cards[i]
		return append(line("mac", quoted(c.MAC), c.MAC != ""), c.lines()...)
	}, func(i int) string { return n.Cards[i].Name })
	section(&b, "bonds", len(n.Bonds), func(i int) []string {
		x := n.Bonds[i]
		lines := []string{"cards: " + flow(x.Cards), "mode: " + string(x.Mode)}
		lines = append(lines, line("lacpRate", x.LACPRate, x.LACPRate != "")...)
		lines = append(lines, line("hashPolicy", x.HashPolicy, x.HashPolicy != "")...)
		lines = append(lines, line("primary", quoted(x.Primary), x.Primary != "")...)
		return append(lines, x.lines()...)
	}, func(i int) string { return n.Bonds[i].Name })
	section(&b, "vlans", len(n.VLANs), func(i int) []string {
		v := n.VLANs[i]
		return append([]string{"on: " + quoted(v.On), fmt.Sprintf("id: %d", v.ID)}, v.lines()...)
	}, func(i int) string { return n.VLANs[i].Name })
	section(&b, "bridges", len(n.Bridges), func(i int) []string {
		x := n.Bridges[i]
		return append([]string{"on: " + quoted(x.On)}, x.lines()...)
	}, func(i int) string { return n.Bridges[i].Name })
	if len(n.DNS) > 0 {
		fmt.Fprintf(&b, "dns: %s\n", flow(texts(n.DNS)))
	}
	b.WriteString(formatFirewall(n.Firewall))
	return []byte(b.String())
}

func section(b *strings.Builder, name string, count int, lines func(int) []string, title func(int) string) {
	if count == 0 {
		return
	}
	b.WriteString(name + ":\n")
	for i := range count {
		fmt.Fprintf(b, "  - name: %s\n", quoted(title(i)))
		for _, l := range lines(i) {
			b.WriteString("    " + l + "\n")
		}
	}
}

func (l *Link) lines() []string {
	lines := line("mtu", fmt.Sprint(l.MTU), l.MTU != 0)
	addresses := texts(l.Static)
	for _, way := range []struct {
		word string
		is   bool
	}{{"dhcp4", l.DHCP4}, {"dhcp6", l.DHCP6}, {"slaac", l.SLAAC}} {
		if way.is {
			addresses = append(addresses, way.word)
		}
	}
	lines = append(lines, line("addresses", flow(addresses), len(addresses) > 0)...)
	lines = append(lines, line("gateway", flow(texts(l.Gateways)), len(l.Gateways) > 0)...)
	lines = append(lines, line("defaultRoute", "false", l.NoDefaultRoute)...)
	if len(l.Routes) > 0 {
		lines = append(lines, "routes:")
	}
	for _, r := range l.Routes {
		s := fmt.Sprintf("  - {to: %q, via: %q", r.To, r.Via)
		if r.Metric != 0 {
			s += fmt.Sprintf(", metric: %d", r.Metric)
		}
		lines = append(lines, s+"}")
	}
	lines = append(lines, line("roles", flow(words(l.Roles)), len(l.Roles) > 0)...)
	return append(lines, line("physicalNetwork", quoted(l.PhysicalNetwork), l.PhysicalNetwork != "")...)
}

func line(name, value string, given bool) []string {
	if !given {
		return nil
	}
	return []string{name + ": " + value}
}

// flow formats a list in one line.
func flow(all []string) string {
	words := make([]string, len(all))
	for i, s := range all {
		words[i] = quoted(s)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// quoted quotes a text that YAML could interpret as something else than text.
func quoted(s string) string {
	plain := strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./-_") == ""
	digits := s == "" || s[0] >= '0' && s[0] <= '9' && !strings.Contains(s, ".")
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		plain = false
	}
	if plain && !digits {
		return s
	}
	return fmt.Sprintf("%q", s)
}

func texts[T fmt.Stringer](all []T) []string {
	out := make([]string, len(all))
	for i, a := range all {
		out[i] = a.String()
	}
	return out
}
