// Package appgateway lets users reach what their instances serve by HTTP (Jupyter,
// ComfyUI, vLLM) through one HTTPS port on each node of the cluster, whether an
// instance has an address outside or not:
//
//	https://8888-4f9c2a7be01d.apps.example.com/     port 8888 of ins-4f9c2a7be01d
//
//	browser ─TLS─► Gateway: pass or API key ─► Directory: who, may he
//	                  │
//	                  └─ Dialer ─► node that runs the instance ─► its network ─► port
//	                     HTTP and WebSocket
//
// Each port of each instance is an origin of its own, as what a guest serves is hostile
// to everybody but its users: it must see neither the portal nor another instance.
//
// A browser comes with a link that the API has made: it carries a pass for a minute,
// in its fragment, which is in no log and no Referer. The page at EnterPath trades it
// for a cookie with a pass for a visit. Programs come with an API key as a bearer
// token. Neither reaches the guest.
//
//	request ─► host: which instance and port ─► pass ─► visit ─► proxied
//	              │                              │        └ ends when the right ends
//	              └ not found                    └ told how to get in
//
// A visit is what the Directory has admitted, and the right is watched for as long as
// it lasts: requests and WebSockets end with the session or key, the user, and the
// instance's run.
//
// Files: host.go reads and writes addresses; pass.go signs passes and keys.go keeps what
// signs them; visit.go admits; origin.go refuses what other sites send; proxy.go
// carries requests; enter.go and page.go are what the gateway itself says; gateway.go
// and limits.go serve.
package appgateway
