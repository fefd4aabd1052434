// Package billingmonth lives through a provider's month in virtual time, and holds the
// invoices against what has happened. It has tests only.
//
//	story ─HTTP─► api/server ─► memstore.Store ◄─ appliance/controlplane/invoicing (invoices, dunning)
//	                               ▲        ▲
//	                               │        └─ plan.Next
//	                            agent.Stepper on three nodes ─► fakes of hypervisor, pools and gpud
//	                                                               │
//	                            truth: what really ran ◄───────────┘
//
// API server, planner, agents and books are the real ones. The story is told by
// the API, and again by the WHMCS module.
package billingmonth
