package api

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// MaxRules limits the rules of a security group.
const MaxRules = 128

// SelfGroup is the group of a rule that means the group that contains the rule.
const SelfGroup SecurityGroupID = "self"

// ProjectSecurityGroup returns the spec of a new project's group: incoming traffic is
// allowed only from the same group, outgoing traffic is not restricted.
func ProjectSecurityGroup(self SecurityGroupID) SecurityGroupSpec {
	return SecurityGroupSpec{Rules: []SecurityRule{
		{Direction: Ingress, Protocol: ProtocolAny, Group: self},
		{Direction: Egress, Protocol: ProtocolAny},
	}}
}

// ValidateSecurityGroup checks a spec.
func ValidateSecurityGroup(s SecurityGroupSpec) error {
	var bad faults
	if len(s.Rules) > MaxRules {
		bad.note(invalid("spec.rules", "has %d rules, want at most %d", len(s.Rules), MaxRules))
		return bad.err()
	}
	for i, r := range s.Rules {
		field := fmt.Sprintf("spec.rules[%d]", i)
		bad.note(oneOf(field+".direction", r.Direction, Ingress, Egress),
			oneOf(field+".protocol", r.Protocol, ProtocolTCP, ProtocolUDP, ProtocolICMP, ProtocolICMP6, ProtocolAny))
		if r.Ports != "" {
			if r.Protocol != ProtocolTCP && r.Protocol != ProtocolUDP {
				bad.note(invalid(field+".ports", "protocol %s has no ports", r.Protocol).WithHint("omit them, or use tcp or udp"))
			}
			if _, _, err := ParsePorts(r.Ports); err != nil {
				bad.note(invalid(field+".ports", "%q is not a valid port or range of ports", clip(r.Ports)).WithHint("e.g. 80 or 8000-8080"))
			}
		}
		if r.Cidr != "" && r.Group != "" {
			bad.note(invalid(field+".group", "must have either a cidr or a group").WithHint("create two rules"))
		}
		if r.Cidr == "" {
			continue
		}
		p, err := netip.ParsePrefix(r.Cidr)
		switch {
		case err != nil || p.Addr().Is4In6():
			bad.note(invalid(field+".cidr", "%q is not a valid network", clip(r.Cidr)).WithHint("e.g. 192.0.2.0/24, or 192.0.2.7/32 for one address"))
		case p.Masked() != p:
			bad.note(invalid(field+".cidr", "%s has host bits set beyond its /%d", r.Cidr, p.Bits()).WithHint("%s?", p.Masked()))
		case r.Protocol == ProtocolICMP && p.Addr().Is6(), r.Protocol == ProtocolICMP6 && p.Addr().Is4():
			bad.note(invalid(field+".protocol", "protocol %s does not match addresses like %s", r.Protocol, r.Cidr).WithHint("use icmp for IPv4 and icmp6 for IPv6"))
		}
	}
	return bad.err()
}

// ParsePorts parses "80" or "8000-8080".
func ParsePorts(s string) (first, last uint16, err error) {
	a, b, isRange := strings.Cut(s, "-")
	if !isRange {
		b = a
	}
	x, errX := strconv.ParseUint(a, 10, 16)
	y, errY := strconv.ParseUint(b, 10, 16)
	if errX != nil || errY != nil || x < 1 || y < x || strings.HasPrefix(s, "+") {
		return 0, 0, fmt.Errorf("%q is not a valid range of ports", s)
	}
	return uint16(x), uint16(y), nil
}
