package client

import (
	"context"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// Networks are the collection of kind Network.
func (a *API) Networks() Collection[api.Network] {
	return Collection[api.Network]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListNetworks(ctx, &api.ListNetworksParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization, Project: q.Project})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetNetwork(ctx, ref, &api.GetNetworkParams{Organization: q.Organization, Project: q.Project})
		},
		create: func(ctx context.Context, o api.Network) (*http.Response, error) {
			return a.gen.CreateNetwork(ctx, &api.CreateNetworkParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.Network) (*http.Response, error) {
			return a.gen.UpdateNetwork(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteNetwork(ctx, id) },
	}
}

// SecurityGroups are the collection of kind SecurityGroup.
func (a *API) SecurityGroups() Collection[api.SecurityGroup] {
	return Collection[api.SecurityGroup]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListSecurityGroups(ctx, &api.ListSecurityGroupsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization, Project: q.Project})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetSecurityGroup(ctx, ref, &api.GetSecurityGroupParams{Organization: q.Organization, Project: q.Project})
		},
		create: func(ctx context.Context, o api.SecurityGroup) (*http.Response, error) {
			return a.gen.CreateSecurityGroup(ctx, &api.CreateSecurityGroupParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.SecurityGroup) (*http.Response, error) {
			return a.gen.UpdateSecurityGroup(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) {
			return a.gen.DeleteSecurityGroup(ctx, id)
		},
	}
}

// ExternalNetworks are the collection of kind ExternalNetwork.
func (a *API) ExternalNetworks() Collection[api.ExternalNetwork] {
	return Collection[api.ExternalNetwork]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListExternalNetworks(ctx, &api.ListExternalNetworksParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetExternalNetwork(ctx, ref)
		},
		create: func(ctx context.Context, o api.ExternalNetwork) (*http.Response, error) {
			return a.gen.CreateExternalNetwork(ctx, &api.CreateExternalNetworkParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.ExternalNetwork) (*http.Response, error) {
			return a.gen.UpdateExternalNetwork(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) {
			return a.gen.DeleteExternalNetwork(ctx, id)
		},
	}
}

// Routers are the collection of kind Router.
func (a *API) Routers() Collection[api.Router] {
	return Collection[api.Router]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListRouters(ctx, &api.ListRoutersParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization, Project: q.Project})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetRouter(ctx, ref, &api.GetRouterParams{Organization: q.Organization, Project: q.Project})
		},
	}
}

// FloatingIPs are the collection of kind FloatingIP.
func (a *API) FloatingIPs() Collection[api.FloatingIP] {
	return Collection[api.FloatingIP]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListFloatingIPs(ctx, &api.ListFloatingIPsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization, Project: q.Project})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetFloatingIP(ctx, ref, &api.GetFloatingIPParams{Organization: q.Organization, Project: q.Project})
		},
		create: func(ctx context.Context, o api.FloatingIP) (*http.Response, error) {
			return a.gen.CreateFloatingIP(ctx, &api.CreateFloatingIPParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.FloatingIP) (*http.Response, error) {
			return a.gen.UpdateFloatingIP(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteFloatingIP(ctx, id) },
	}
}

// LoadBalancers are the collection of kind LoadBalancer.
func (a *API) LoadBalancers() Collection[api.LoadBalancer] {
	return Collection[api.LoadBalancer]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListLoadBalancers(ctx, &api.ListLoadBalancersParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization, Project: q.Project})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetLoadBalancer(ctx, ref, &api.GetLoadBalancerParams{Organization: q.Organization, Project: q.Project})
		},
		create: func(ctx context.Context, o api.LoadBalancer) (*http.Response, error) {
			return a.gen.CreateLoadBalancer(ctx, &api.CreateLoadBalancerParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.LoadBalancer) (*http.Response, error) {
			return a.gen.UpdateLoadBalancer(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteLoadBalancer(ctx, id) },
	}
}
