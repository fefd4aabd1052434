package client

import (
	"context"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// Services are the collection of kind Service. Create and Update are both
// PutService.
func (a *API) Services() Collection[api.Service] {
	return Collection[api.Service]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListServices(ctx, &api.ListServicesParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetService(ctx, ref)
		},
		create: func(ctx context.Context, o api.Service) (*http.Response, error) {
			return a.gen.PutService(ctx, o.Meta.Name, o)
		},
		update: func(ctx context.Context, id string, o api.Service) (*http.Response, error) {
			return a.gen.PutService(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteService(ctx, id) },
	}
}

// SuspendService suspends its organization; ResumeService ends that.
func (a *API) SuspendService(ctx context.Context, ref, reason string) (api.Service, error) {
	return decode[api.Service](a.gen.SuspendService(ctx, ref, api.OrganizationSuspension{Reason: reason})) //nolint:bodyclose // decode closes it
}

// ResumeService ends a suspension.
func (a *API) ResumeService(ctx context.Context, ref string) (api.Service, error) {
	return decode[api.Service](a.gen.ResumeService(ctx, ref)) //nolint:bodyclose // decode closes it
}

// SetServicePassword of its user.
func (a *API) SetServicePassword(ctx context.Context, ref, password string) (api.Service, error) {
	return decode[api.Service](a.gen.SetServicePassword(ctx, ref, api.ServicePassword{Password: password})) //nolint:bodyclose // decode closes it
}

// ServiceLoginLink is a token that logs its user in, once.
func (a *API) ServiceLoginLink(ctx context.Context, ref string) (api.LoginLink, error) {
	return decode[api.LoginLink](a.gen.CreateServiceLoginLink(ctx, ref)) //nolint:bodyclose // decode closes it
}

// UserLoginLink is a token that logs a user in, whom the caller manages.
func (a *API) UserLoginLink(ctx context.Context, ref, organization, project string) (api.LoginLink, error) {
	p := api.CreateUserLoginLinkParams{Organization: organization, Project: project}
	return decode[api.LoginLink](a.gen.CreateUserLoginLink(ctx, ref, &p)) //nolint:bodyclose // decode closes it
}

// LoginWithLink begins the session that a token is good for.
func (a *API) LoginWithLink(ctx context.Context, token string) (api.Session, error) {
	return decode[api.Session](a.gen.LoginWithLink(ctx, api.LoginToken{Token: token})) //nolint:bodyclose // decode closes it
}

// ServiceUsage is one page of what an installation's services used in a month.
func (a *API) ServiceUsage(ctx context.Context, p api.ListServiceUsageParams) (api.ServiceUsagePage, error) {
	return decode[api.ServiceUsagePage](a.gen.ListServiceUsage(ctx, &p)) //nolint:bodyclose // decode closes it
}
