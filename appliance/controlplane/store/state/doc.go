// Package state is the state machine of the store: it computes the cluster's objects
// from the entries of the log. The result depends on the log alone. The package works
// in transactions that its caller runs, and uses no files, clock, randomness or Raft
// (the linter and appliance/cmd/arch_test.go enforce that).
//
// It has four groups of exported functions:
//
//	entry   EncodeBatch, EncodeSettlement, EncodeCompare; InTerm restricts an entry to one term
//	apply   Prepare creates or upgrades the tables of a file; Apply applies entries
//	read    ViewOf a transaction: objects, records, use, audit log, events, history, changes
//	copy    View.Dump passes on all that a backup contains, a Loader builds tables from it;
//	        View.Part and View.Digests are what nodes compare
//
// The effect of an entry is implemented in one file per concern: operations.go has the
// commands, txn.go the batch that they run in, view.go the tables, and claims, quota,
// references, use, audit, events and history what is derived from a change. What is
// written in the tables may change only with a feature level (level.go);
// testdata/golden has the logs of the levels so far.
package state
