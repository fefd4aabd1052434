// Package trace explains where a packet arrives or is dropped.
//
//	Topology, Question ─ Explain ─► Verdict           pure: what should happen, rule by rule
//	                   ─ Flow ────► ovn-trace ─ ParseTrace ─► Real
//	Verdict, Real ─ Compare ─► lines that a person reads
//
// Explain evaluates a Topology; ovn-trace evaluates the rows derived from it.
// If the two disagree, the answer reports it: then the databases lag behind, or
// one of the two is wrong. The packet is the first of a connection; replies to
// allowed packets are allowed.
package trace
