// Package client speaks to the API: the requests generated from openapi.yaml
// (client.gen.go, Client), and over them API: a token, https or a unix socket,
// retries of what may be repeated, errors as *api.Error, one Collection per
// kind.
package client
