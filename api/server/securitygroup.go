package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// securityGroupSpec replaces names of groups with IDs and validates.
func (h *handlers) securityGroupSpec(ctx context.Context, m api.Meta, _ *api.SecurityGroup, s api.SecurityGroupSpec) (api.SecurityGroupSpec, error) {
	s.Rules = slices.Clone(s.Rules)
	bad := []error{api.ValidateSecurityGroup(s)}
	if len(s.Rules) > api.MaxRules {
		return s, bad[0]
	}
	for i, r := range s.Rules {
		switch r.Group {
		case "":
		case api.SelfGroup, api.SecurityGroupID(m.ID):
			s.Rules[i].Group = api.SecurityGroupID(m.ID)
		default:
			_, o, err := sibling[api.SecurityGroup](ctx, h, api.KindSecurityGroup, m, fmt.Sprintf("spec.rules[%d].group", i), string(r.Group))
			bad = append(bad, err)
			s.Rules[i].Group = api.SecurityGroupID(o.Meta.ID)
		}
	}
	return s, api.Join(bad...)
}
