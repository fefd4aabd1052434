// Package server is the REST API: the operations of openapi.yaml (operations.gen.go),
// what answers each (routes.go), and thin handlers over a store.
//
//	request ─► guard (limits.go, guard.go): rate, body size, key, role
//	        ─► route.go: parameters; strict JSON (decode.go): unknown fields, depth
//	        ─► the kind's file (instance.go, …): names → ids, defaults, api.Validate…
//	        ─► crud.go: scope, one batch to the store
//
// The kinds are independent of HTTP, and the handlers of Raft: needs.go declares what
// the server needs from other packages. An object outside a key's scope is "not found"
// for every operation.
package server
