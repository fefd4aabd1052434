package client

import (
	"context"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// SuspendService suspends its organization; ResumeService ends that.
func (a *API) SuspendService(ctx context.Context, ref, reason string) (api.Service, error) {
	return post[api.Service](ctx, a, api.OrganizationSuspension{Reason: reason}, "services", ref, "suspend")
}

// ResumeService ends a suspension.
func (a *API) ResumeService(ctx context.Context, ref string) (api.Service, error) {
	return post[api.Service](ctx, a, nil, "services", ref, "resume")
}

// SetServicePassword of its user.
func (a *API) SetServicePassword(ctx context.Context, ref, password string) (api.Service, error) {
	return put[api.Service](ctx, a, api.ServicePassword{Password: password}, "services", ref, "password")
}

// ServiceLoginLink is a token that logs its user in, once.
func (a *API) ServiceLoginLink(ctx context.Context, ref string) (api.LoginLink, error) {
	return post[api.LoginLink](ctx, a, nil, "services", ref, "login-link")
}

// UserLoginLink is a token that logs a user in, whom the caller manages.
func (a *API) UserLoginLink(ctx context.Context, ref, organization, project string) (api.LoginLink, error) {
	p := api.CreateUserLoginLinkParams{Organization: organization, Project: project}
	return call[api.LoginLink](ctx, a, request{method: http.MethodPost, path: []string{"users", ref, "login-link"}, params: p})
}

// LoginWithLink begins the session that a token is good for.
func (a *API) LoginWithLink(ctx context.Context, token string) (api.Session, error) {
	return post[api.Session](ctx, a, api.LoginToken{Token: token}, "login", "link")
}

// ServiceUsage is one page of what an installation's services used in a month.
func (a *API) ServiceUsage(ctx context.Context, p api.ListServiceUsageParams) (api.ServiceUsagePage, error) {
	return get[api.ServiceUsagePage](ctx, a, p, "service-usage")
}
