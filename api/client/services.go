package client

import (
	"context"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// SuspendService suspends the service's organization; ResumeService lifts the
// suspension.
func (a *API) SuspendService(ctx context.Context, ref, reason string) (api.Service, error) {
	return post[api.Service](ctx, a, api.OrganizationSuspension{Reason: reason}, "services", ref, "suspend")
}

// ResumeService lifts a suspension.
func (a *API) ResumeService(ctx context.Context, ref string) (api.Service, error) {
	return post[api.Service](ctx, a, nil, "services", ref, "resume")
}

// SetServicePassword sets the password of the service's user.
func (a *API) SetServicePassword(ctx context.Context, ref, password string) (api.Service, error) {
	return put[api.Service](ctx, a, api.ServicePassword{Password: password}, "services", ref, "password")
}

// ServiceLoginLink returns a token that signs in the service's user once.
func (a *API) ServiceLoginLink(ctx context.Context, ref string) (api.LoginLink, error) {
	return post[api.LoginLink](ctx, a, nil, "services", ref, "login-link")
}

// UserLoginLink returns a token that signs in a user whom the caller manages.
func (a *API) UserLoginLink(ctx context.Context, ref, organization, project string) (api.LoginLink, error) {
	p := api.CreateUserLoginLinkParams{Organization: organization, Project: project}
	return call[api.LoginLink](ctx, a, request{method: http.MethodPost, path: []string{"users", ref, "login-link"}, params: p})
}

// LoginWithLink begins a session with a link's token.
func (a *API) LoginWithLink(ctx context.Context, token string) (api.Session, error) {
	return post[api.Session](ctx, a, api.LoginToken{Token: token}, "login", "link")
}

// ServiceUsage returns one page of the usage of an installation's services in a month.
func (a *API) ServiceUsage(ctx context.Context, p api.ListServiceUsageParams) (api.ServiceUsagePage, error) {
	return get[api.ServiceUsagePage](ctx, a, p, "service-usage")
}
