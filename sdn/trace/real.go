package trace

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn"
)

// Flow returns the arguments of ovn-trace after the options that select the
// database. The error is an *api.Error.
func Flow(t sdn.Topology, q Question) ([]string, error) {
	w := &walk{t: t, q: q}
	if err := w.start(); err != nil {
		return nil, err
	}
	if w.source == nil {
		return nil, api.Errorf(api.CodeInvalid, "OVN can trace only packets that an instance sends")
	}
	n := w.network(w.source.Network)
	mac := ovn.MAC("router", string(n.Project), string(n.ID)) // MAC of the gateway
	switch {
	case w.to == sdn.MetadataAddress:
		mac = ovn.MetadataMAC(n.ID)
	case n.CIDR4.Contains(w.to) || n.CIDR6.Contains(w.to):
		if p := find(t.Ports, func(p sdn.Port) bool { return p.Network == n.ID && (p.Address4 == w.to || p.Address6 == w.to) }); p != nil {
			mac = p.MAC
		}
	}
	ip := "ip4"
	if w.from.Is6() {
		ip = "ip6"
	}
	match := fmt.Sprintf(`inport == "%s" && eth.src == %s && eth.dst == %s && %s.src == %s && %s.dst == %s && ip.ttl == 64`,
		w.source.ID, w.source.MAC, mac, ip, w.from, ip, w.to)
	switch q.Protocol {
	case api.ProtocolICMP:
		match += " && icmp4.type == 8 && icmp4.code == 0"
	case api.ProtocolICMP6:
		match += " && icmp6.type == 128 && icmp6.code == 0"
	default:
		match += fmt.Sprintf(" && %s.src == 40000 && %s.dst == %d", q.Protocol, q.Protocol, q.Port)
	}
	args := []string{"--detailed"}
	for range 12 { // the first packet of a connection, at every lookup
		args = append(args, "--ct=new")
	}
	return append(args, ovn.SwitchName(n.ID), match), nil
}

// Real is the result of ovn-trace.
type Real struct {
	// Ports are those that it was delivered to.
	Ports []sdn.PortID
	// Out means that it left for the physical network.
	Out bool
	// Answered means that the router or the network itself answered it.
	Answered bool
	// Table and Match are those of the last flow that dropped it.
	Table, Match string
}

// Passes reports whether it was delivered.
func (r Real) Passes() bool { return len(r.Ports) > 0 || r.Out || r.Answered }

const maxTrace = 1 << 20 // bytes

var (
	outputLine = regexp.MustCompile(`^/\* output to "([^"]{1,200})", type "([a-z0-9]{0,20})" \*/$`)
	tableLine  = regexp.MustCompile(`^\d{1,3}\. ([a-z0-9_]{1,60})(?: \([^)]{1,80}\))?: (.+)$`)
)

// ParseTrace parses the output of ovn-trace --detailed (ovn-trace(8)).
func ParseTrace(text string) (Real, error) {
	if len(text) > maxTrace {
		return Real{}, fmt.Errorf("output of ovn-trace has %d bytes, want at most %d", len(text), maxTrace)
	}
	var r Real
	var table, match string
	seen := false
	asking := false // the following lines are about the router's ARP or ND request
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := tableLine.FindStringSubmatch(line); m != nil {
			seen = true
			table = m[1]
			match, _, _ = strings.Cut(m[2], ", priority ")
			if m[2] == "no match (implicit drop)" {
				r.Table, r.Match = table, "no match"
			}
			continue
		}
		switch m := outputLine.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "arp {") || strings.HasPrefix(line, "nd_ns {"):
			asking, r.Table, r.Match = true, table, match
		case m != nil && m[2] == "localnet":
			r.Out = true // the packet itself, or the request before it
		case m != nil && asking:
		case m != nil && m[2] != "patch" && m[2] != "l3gateway" && m[2] != "router":
			if !slices.Contains(r.Ports, sdn.PortID(m[1])) && len(r.Ports) < 4096 {
				r.Ports = append(r.Ports, sdn.PortID(m[1]))
			}
		case line == "drop;":
			r.Table, r.Match = table, match
		case strings.HasPrefix(line, "icmp4.type = 0") || strings.HasPrefix(line, "icmp6.type = 129") || line == "icmp4 { eth.dst <-> eth.src; };":
			r.Answered = true
		}
	}
	if !seen {
		return Real{}, fmt.Errorf("output of ovn-trace contains no table: %.200q", text)
	}
	return r, nil
}

// where describes the table in words, or returns its name if there is no
// description.
func (r Real) where() string {
	words := map[string]string{
		"ls_in_check_port_sec": "port security: the sender's MAC and addresses", "ls_in_apply_port_sec": "port security: the sender's MAC and addresses",
		"ls_in_acl": "the sender's security groups", "ls_in_acl_eval": "the sender's security groups", "ls_in_acl_action": "the sender's security groups",
		"ls_in_acl_after_lb": "the sender's security groups", "ls_out_acl": "the receiver's security groups",
		"ls_out_acl_eval": "the receiver's security groups", "ls_out_acl_action": "the receiver's security groups",
		"ls_in_l2_lkup": "the network has no port with that MAC address", "ls_in_l2_unknown": "the network has no port with that MAC address",
		"lr_in_ip_routing": "the router has no route", "lr_in_ip_input": "the router does not respond to this", "lr_in_policy": "a policy of the router",
		"lr_in_arp_request": "the router resolves the address, and no port is known to have it", "lr_in_arp_resolve": "the router cannot resolve the address", "lr_in_admission": "the router has no such port",
	}[r.Table]
	if words == "" {
		return r.Table
	}
	return words + " (" + r.Table + ")"
}

// Lines returns the readable result: the verdict, and whether OVN agrees.
// asked is nil if OVN was not queried, with the reason in why.
func Lines(q Question, v Verdict, asked *Real, why string) []string {
	head := "arrives"
	if !v.Passes {
		head = "does not arrive"
	}
	lines := []string{fmt.Sprintf("%s to %s, %s: %s", q.end(q.From), q.end(q.To), q.what(), head)}
	for _, s := range v.Steps {
		mark := "  ok    "
		if !s.OK {
			mark = "  DROP  "
		}
		lines = append(lines, mark+s.What)
	}
	switch {
	case asked == nil && why != "":
		lines = append(lines, "OVN was not queried: "+why)
	case asked == nil:
	case agree(q, v, *asked):
		lines = append(lines, "OVN agrees.")
	case asked.Passes():
		lines = append(lines, fmt.Sprintf("OVN DISAGREES: there it reaches %s.", asked.ends(q)), disagreement)
	case asked.Table == "":
		lines = append(lines, "OVN DISAGREES: there it does not arrive anywhere.", disagreement)
	default:
		lines = append(lines, "OVN DISAGREES: there it is dropped at "+asked.where()+".", disagreement)
	}
	if v.Next != "" {
		lines = append(lines, "next: "+v.Next)
	}
	return lines
}

const disagreement = "next: try again in a few seconds; if it persists, check the networks of the nodes (basalt node get NODE)"

func (r Real) ends(q Question) string {
	var all []string
	for _, p := range r.Ports {
		all = append(all, q.port(p))
	}
	if r.Out {
		all = append(all, "the physical network")
	}
	if r.Answered {
		all = append(all, "the router, which responds")
	}
	return strings.Join(all, ", ")
}

func agree(q Question, v Verdict, r Real) bool {
	if q.To.Port != "" {
		return v.Passes == slices.Contains(r.Ports, q.To.Port)
	}
	if v.Passes != r.Passes() {
		return false
	}
	for _, p := range r.Ports {
		if _, instance := p.Instance(); instance && len(v.Ports) > 0 && !slices.Contains(v.Ports, p) {
			return false
		}
	}
	return true
}
