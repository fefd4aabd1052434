package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// cephClusterSpec fills in defaults and validates.
func cephClusterSpec(_ context.Context, m api.Meta, _ *api.CephCluster, s api.CephClusterSpec) (api.CephClusterSpec, error) {
	s = api.DefaultCephCluster(s)
	return s, api.ValidateCephCluster(m.Name, s)
}

// cephClusterDeleted refuses to delete an enabled Ceph cluster.
func cephClusterDeleted(_ context.Context, c api.CephCluster) ([]api.Command, error) {
	if c.Spec.Enabled {
		return nil, api.Errorf(api.CodeState, "cannot delete the Ceph cluster: it is enabled, want disabled").WithHint("basalt ceph disable")
	}
	return nil, nil
}
