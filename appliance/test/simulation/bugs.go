package simulation

// Planted is a fault of the product, made here by how the simulation wires it:
// the simulation is worth something only if it finds each.
type Planted int

// What can be planted.
const (
	NoBug Planted = iota
	// PlannerMovesOnSuspicion takes silence for death.
	PlannerMovesOnSuspicion
	// AgentIgnoresLease starts and resumes whatever the lease says.
	AgentIgnoresLease
	// FenceThatDoesNothing neither kills nor lets the watchdog run out.
	FenceThatDoesNothing
	// NobodyNamesTheLeader leaves a node that does not hear the leader without
	// one, though another member hears both.
	NobodyNamesTheLeader
	// LostStoreVotes takes what is there of a store for all of it: whatever the node
	// has told others with what was there before.
	LostStoreVotes
	// DifferenceUnseen never compares the nodes' tables.
	DifferenceUnseen
	// LevelFromTheStart does what a new feature level brings from the start of the
	// new release on, without the entry of the log that says so.
	LevelFromTheStart
	// LevelUnasked raises the level though a member does not support it.
	LevelUnasked
)
