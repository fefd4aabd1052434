// Package client is the Go client of the API. It supports tokens, HTTPS and Unix
// sockets, several servers of one cluster, and retries of requests that may be
// repeated; errors are *api.Error, and there is one Collection per kind.
package client
