// Package appgateway lets users access what their instances serve by HTTP (Jupyter,
// ComfyUI, vLLM) through one HTTPS port on each node of the cluster, whether or not
// an instance has an external address:
//
//	https://8888-4f9c2a7be01d.apps.example.com/     port 8888 of ins-4f9c2a7be01d
//
//	browser ─TLS─► Gateway: pass or API key ─► Directory: who, and what is allowed
//	                  │
//	                  └─ Dialer ─► node that runs the instance ─► its network ─► port
//	                     HTTP and WebSocket
//
// Each port of each instance is an origin of its own, because content of a guest is
// hostile to all but its users: it must be able to access neither the portal
// nor another instance.
//
// A browser arrives by a link that the API has created: it has a pass that is valid
// for a minute, in its fragment, which appears in no log and no Referer. The page
// at EnterPath exchanges it for a cookie with a pass for a visit. Programs send an
// API key as a bearer token. Neither is sent to the guest.
//
//	request ─► host: which instance and port ─► pass ─► visit ─► proxied
//	              │                              │        └ ends when the right ends
//	              └ not found                    └ page that explains how to sign in
//
// A visit is what the Directory has admitted. The right to it is watched for as
// long as it lasts: requests and WebSockets end with the session or key, the user,
// and the instance's run.
//
// Files: host.go formats and parses addresses; pass.go signs passes and keys.go
// stores the key for that; visit.go admits visits; origin.go rejects requests of
// other sites; proxy.go forwards requests, and answer.go changes responses; enter.go
// and page.go are the gateway's own pages; gateway.go and limits.go serve connections.
package appgateway
