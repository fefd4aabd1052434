// Package billingmonth simulates a month of a provider in virtual time and compares the
// invoices with the actual usage. It has tests only.
//
//	story ─HTTP─► api/server ─► memstore.Store ◄─ appliance/controlplane/invoicing (invoices, dunning)
//	                               ▲        ▲
//	                               │        └─ plan.Next
//	                            agent.Stepper on three nodes ─► fakes of hypervisor, pools and gpud
//	                                                               │
//	                            truth: what really ran ◄───────────┘
//
// API server, planner, agents and invoicing are the real code. The month is driven through the
// API, and a second time through the WHMCS module.
package billingmonth
