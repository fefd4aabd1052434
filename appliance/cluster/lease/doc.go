// Package lease determines which nodes are alive. A node may run movable instances,
// those that could be started elsewhere, only while it holds a lease. The leader
// may have them started elsewhere only when the lease is certain to have expired.
//
// # The node's side (Holder, Client)
//
//	          granted
//	none ──────────────► valid ──(deadline)──► over ──granted──► valid
//	 ▲                     │
//	 └────Adopt(epoch)── refused      (the cluster has declared the node lost:
//	                                   clean up, adopt the epoch, ask again)
//
// A heartbeat is sent to the leader every 2 s, on any path that works, or relayed
// by another member if no direct path works. A grant is valid for 10 s on the
// node's own clock, counted from before the heartbeat was sent, so delays can only
// shorten it. At that deadline basalt-fence, a separate process, kills the movable
// instances; if basalt-fence fails to do so, a watchdog resets the machine.
//
// A movable instance is started only while the lease is valid and basalt-fence has
// acknowledged a deadline (fence.Client.Covers): a basalt-fence that was stopped
// before its first lease arms no watchdog. The instance is created paused and
// resumed after both conditions have been checked again, so basalt-fence can see it
// before the deadline whenever it runs. The model in the tests finds violations if
// either rule is left out.
//
// # The leader's side (Granter, Server)
//
//	        6 s without heartbeat        2 witnesses reach it on no path
//	Alive ───────────────────► Silent ───────────────────► Suspect
//	  ▲                          │                            │ 25 s since the last
//	  └──────── heartbeat ───────┴────────────────────────────┤ possible grant
//	                                                          ▼
//	                                          Fenced (for this epoch, for good)
//
// 25 s is the sum of the lease (10 s), the watchdog (10 s) and a guard (5 s). The
// guard covers the time for killing (basalt-fence allows it 3 s before it lets the
// watchdog fire) and clock rates that differ by up to 1 %.
//
// A grant requires, in this order, that the heartbeat has arrived, that a majority
// has verified the leadership after that, in the term in which this Granter was
// elected, and that the epoch is the node's current one. An older leader therefore
// cannot grant a lease that a newer leader does not account for: the newer leader
// counts its 25 s from its own election, which came after any verification of the
// older leader, which came after the arrival, which came after the moment from
// which the node counts.
//
// A Fenced verdict belongs to one term and is valid only if the change that it
// causes (state Lost, epoch+1) is committed in that term. Between a verdict and its
// commit another leader could have been elected, granted a lease and been deposed.
// The state machine compares Verdict.Term with the term of the log entry.
//
// # Witnesses
//
// Every member probes every other on each path once a second; three misses in a row
// mark a path as down, one success marks it as up. Opinions are sent with
// heartbeats and expire after 5 s. A node is suspected when two witnesses with a
// current opinion cannot reach it on any path; the leader counts as one of them.
// Nothing else makes a node suspect: not the failure of one path, and not the
// leader alone. A heartbeat, direct or relayed, ends any suspicion.
//
// In a cluster of one node there is no other node to suspect and no witness. The node
// leads and grants its own lease.
//
// In a cluster of two nodes the remaining node is the only witness and cannot
// distinguish a dead node from a cut cable, in which case the other node is alive
// and in the same position. It therefore never declares the other node lost by
// itself, explains this in Why, and leaves the decision to an operator (Revoke,
// used by `basalt node remove`). The same applies in larger clusters when only one
// member is left as a witness. The 25 s also apply after Revoke.
//
// # Time
//
// Instants are readings of CLOCK_BOOTTIME on one machine: they never jump, include
// suspended time, and are never compared with those of another machine. The wall
// clock is not used. A node must not be a virtual machine that its host may pause:
// its clock would stop while the lease expires elsewhere.
package lease
