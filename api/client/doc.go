// Package client is the Go client of the API: a token, https or a unix socket,
// several servers of one cluster, retries of what may be repeated, errors as
// *api.Error, one Collection per kind.
package client
