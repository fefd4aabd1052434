// Package server is the REST API: the operations of openapi.yaml (operations.gen.go),
// what answers each (routes.go), and thin handlers over a store.
//
//	request ─► guard (limits.go, guard.go): rate, body size, key, role
//	        ─► route.go: parameters; strict JSON (decode.go): unknown fields, depth
//	        ─► the kind's file (instance.go, …): names → ids, defaults, api.Validate…
//	        ─► crud.go: scope, one batch to the store
//
// The kinds know nothing of HTTP and the handlers nothing of Raft: what the
// server needs of others it declares in needs.go. Objects outside a key's scope
// are "not found", whatever the operation.
package server
