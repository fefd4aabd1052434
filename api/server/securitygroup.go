package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// securityGroupSpec turns names of groups into ids and validates.
func (h *handlers) securityGroupSpec(ctx context.Context, m api.Meta, _ *api.SecurityGroup, s api.SecurityGroupSpec) (api.SecurityGroupSpec, error) {
	s.Rules = slices.Clone(s.Rules)
	if err := api.ValidateSecurityGroup(s); err != nil {
		return s, err
	}
	for i, r := range s.Rules {
		switch r.Group {
		case "":
		case api.SelfGroup, api.SecurityGroupID(m.ID):
			s.Rules[i].Group = api.SecurityGroupID(m.ID)
		default:
			_, o, err := sibling[api.SecurityGroup](ctx, h, api.KindSecurityGroup, m, fmt.Sprintf("spec.rules[%d].group", i), string(r.Group))
			if err != nil {
				return s, err
			}
			s.Rules[i].Group = api.SecurityGroupID(o.Meta.ID)
		}
	}
	return s, nil
}
