// Package store is a node's part in keeping the cluster's objects: commands enter a
// Raft log, the state machine (package state) applies them to tables in bbolt, readers
// and watchers look at the tables. This package has Raft, the files and who leads;
// package state what an entry does; package backup what a backup looks like. What
// commands mean is written once, in package storetest; DESIGN.md here says how it is
// kept and what survives what.
//
// Any node takes writes and linearizable reads: a follower forwards the former
// to the leader (Remote), and asks it how far its tables must be for the latter.
//
//	Apply ─► Raft log (log.db, fsync) ─► fsm ─► tables.db (fsync) ─► answer
//	                                             └─► news ─► watches
//
// Locks: sharedCall.mu is held while Store.mu is taken, never the other way.
// tables.mu is held for reading by every transaction and for writing
// only while a restored file takes the place of the old one. Nothing is locked
// while it is held, but bbolt's own locks.
package store
