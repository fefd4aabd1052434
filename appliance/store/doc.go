// Package store keeps the cluster's objects: commands enter a Raft log, a
// deterministic state machine applies them to tables in bbolt, readers and
// watchers look at the tables. What commands mean is written once, in package
// storetest; DESIGN.md here says how it is kept and what survives what.
//
//	Apply ─► Raft log (log.db, fsync) ─► fsm ─► tables.db (fsync) ─► answer
//	                                             └─► bell ─► watches
//
// Files named fsm* are a function of the log alone: no clock, no randomness
// (the linter holds them to it).
//
// Locks: tables.mu is held for reading by every transaction and for writing
// only while a restored file takes the place of the old one. Nothing is locked
// while it is held, but bbolt's own locks.
package store
