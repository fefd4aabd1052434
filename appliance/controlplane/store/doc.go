// Package store is one node's part of the cluster's replicated state: commands enter a
// Raft log, the state machine (package state) applies them to tables in bbolt, and
// readers and watchers read the tables. This package contains Raft, the files and
// leadership; package state defines the effect of an entry; package backup the format
// of a backup. The meaning of commands is specified in package storetest; DESIGN.md
// here describes how they are stored and which faults that survives.
//
// Any node accepts writes and linearizable reads: a follower forwards the former to the
// leader (Remote), and asks it how far its tables must be for the latter.
//
//	Apply ─► Raft log (log.db, fsync) ─► fsm ─► tables.db (fsync) ─► answer
//	                                             └─► news ─► watches
//
// Locks: sharedCall.mu is held while Store.mu is acquired, never the other way.
// tables.mu is held for reading by every transaction and for writing only while a
// restored file replaces the old one. No other locks are acquired while it is held,
// except bbolt's own.
package store
