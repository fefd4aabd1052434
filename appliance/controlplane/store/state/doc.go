// Package state is the state machine of the store: what the entries of the log make
// of the cluster's objects. It is a function of the log alone. It works in
// transactions that somebody else runs, and knows no file, clock, randomness and
// Raft (the linter and appliance/cmd/arch_test.go hold it to that).
//
// Four things are outside of it:
//
//	entry   EncodeBatch, EncodeSettlement, EncodeCompare; InTerm makes one hold in one term only
//	apply   Prepare makes the tables of a new or older file; Apply applies entries
//	read    ViewOf a transaction: objects, records, use, audit trail, events, history, changes
//	copy    View.Dump hands out all that a backup has, a Loader makes tables of it;
//	        View.Part and View.Digests are what nodes compare
//
// What an entry does is written in one file for each concern: operations.go has the
// commands, txn.go the batch that they run in, view.go the tables, and claims,
// quota, references, use, audit, events and history what follows from a change.
// What is written in the tables may change only with a feature level (level.go);
// testdata/golden has the logs of the levels so far.
package state
