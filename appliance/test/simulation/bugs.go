package simulation

// InjectedBug is a fault of the product that the simulation reproduces through its wiring. The tests check
// that the simulation finds each of them.
type InjectedBug int

// The faults that can be injected.
const (
	NoBug InjectedBug = iota
	// PlannerMovesOnSuspicion treats a suspected node as a fenced one.
	PlannerMovesOnSuspicion
	// AgentIgnoresLease starts and resumes instances regardless of the lease.
	AgentIgnoresLease
	// FenceThatDoesNothing neither kills instances nor lets the watchdog expire.
	FenceThatDoesNothing
	// NobodyNamesTheLeader leaves a node that cannot receive from the leader without a leader
	// hint, although another member can reach both.
	NobodyNamesTheLeader
	// LostStoreVotes accepts the remaining files of a damaged store as complete, regardless of
	// what the node has acknowledged to other nodes before.
	LostStoreVotes
	// DifferenceUnseen never compares the nodes' tables.
	DifferenceUnseen
	// LevelFromTheStart applies the behavior of a new feature level as soon as the new release
	// starts, without the log entry that raises the level.
	LevelFromTheStart
	// LevelUnasked raises the level although a member does not support it.
	LevelUnasked
)
