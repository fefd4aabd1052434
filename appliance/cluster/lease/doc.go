// Package lease decides who is alive. A node may run instances that could be
// started elsewhere only while it holds a lease; the leader may have them
// started elsewhere only when it is certain that the lease is over.
//
// # The node's side (Holder, Client)
//
//	          granted
//	none ──────────────► valid ──(deadline)──► over ──granted──► valid
//	 ▲                     │
//	 └────Adopt(epoch)── refused      (the cluster has declared the node lost:
//	                                   clear up, adopt the epoch, ask again)
//
// Every 2 s a heartbeat goes to the leader, on whichever path works, relayed by
// another member when none does. A grant is good for 10 s counted on the node's
// own clock from BEFORE the heartbeat was sent, so delays only shorten it.
// basalt-fence, a process of its own, kills what may move at that deadline, and
// a watchdog resets the machine when basalt-fence itself does not.
//
// A movable instance starts only while the lease is valid and basalt-fence has
// acknowledged a deadline (fence.Client.Covers): one that was stopped before it
// heard of its first lease arms nothing. It is made paused and resumed after
// another look at both, so that whenever it runs, basalt-fence could see it
// before the deadline. The model in the tests breaks without either.
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
// 25 s = 10 s lease + 10 s watchdog + 5 s guard. The guard holds the time that
// killing takes (basalt-fence gives it 3 s before it lets the watchdog run out)
// and clocks that run up to 1 % apart.
//
// A grant needs, in this order: the heartbeat arrived; leadership was verified
// by a majority after that, in the term in which this Granter was elected; the
// epoch is the node's present one. So no older leader can grant what a newer
// one does not allow for: a newer leader counts its 25 s from its own election,
// which came after any verification of the older, which came after the arrival,
// which came after the moment from which the node counts.
//
// A Fenced verdict is of one term, and is worth something only when the change
// it leads to (state Lost, epoch+1) is committed in that term: between a verdict
// and its commit another leader could have come, granted and gone. The state
// machine compares Verdict.Term with the log entry's term.
//
// # Witnesses
//
// Every member probes every other on each path once a second; three misses make
// a path down, one success makes it up. Opinions travel with heartbeats and are
// forgotten after 5 s. A node is suspected when two witnesses with a present
// opinion reach it on no path; the leader is one of them. Nothing else makes it
// suspect: not one path, not the leader alone. A heartbeat, direct or relayed,
// ends any suspicion.
//
// One node: there is nobody to suspect and nobody to witness. It leads, and
// grants its own lease.
//
// Two nodes: the one that is left is a single witness, and cannot tell a dead
// node from a cut cable: the other may be as alive as itself, and as sure. So it
// never declares a death by itself, says so in Why, and leaves it to a person
// who knows (Revoke, behind `basalt node remove`). The same holds in larger
// clusters when only one member is left to look. The 25 s are waited even then.
//
// # Time
//
// Instants are CLOCK_BOOTTIME of one machine: they never step, count suspended
// time, and are never compared with another machine's. The wall clock is not
// used at all. A node must not be a virtual machine that its host pauses: its
// clock would stand still while the lease runs out elsewhere.
package lease
