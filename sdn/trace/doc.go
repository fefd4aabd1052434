// Package trace says in words where a packet goes or dies.
//
//	Topology, Question ─ Explain ─► Verdict           pure: what should happen, rule by rule
//	                   ─ Flow ────► ovn-trace ─ ParseTrace ─► Real
//	Verdict, Real ─ Compare ─► lines that a person reads
//
// Explain knows what a Topology means; ovn-trace knows what OVN made of it.
// When the two disagree the answer says so: then the databases are behind, or
// one of the two is wrong. A connection's first packet is meant; answers to
// what is let through are let through.
package trace
