package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Part is a part of a node that works or fails independently.
type Part string

// Parts.
const (
	PartSwitch  Part = "open vswitch"
	PartNB      Part = "northbound database"
	PartSB      Part = "southbound database"
	PartNorthd  Part = "ovn-northd"
	PartChassis Part = "ovn-controller"
)

func (d DB) part() Part {
	if d == NB {
		return PartNB
	}
	return PartSB
}

// Verb is the kind of an Action.
type Verb string

// Verbs. Each is idempotent, and an interruption at any point leaves a state
// that the next call of Next handles.
const (
	Run            Verb = "run"          // a daemon: start it, unless it runs with this Argv
	Stop           Verb = "stop"         // a daemon
	CreateLocal    Verb = "create local" // Open vSwitch's own database
	Create         Verb = "create"       // a database of one server
	Found          Verb = "found"        // a cluster, by its first server at Address
	Join           Verb = "join"         // the cluster ID, from Address, through Others
	SetAside       Verb = "set aside"    // File becomes File.old
	Remove         Verb = "remove"       // File
	Leave          Verb = "leave"        // the cluster
	Kick           Verb = "kick"         // the server ID out of the cluster
	Convert        Verb = "convert"      // to the installed schema
	Configure      Verb = "configure"    // Open vSwitch: the ovs-vsctl commands in Argv
	Move           Verb = "move"         // addresses from the link ID to the link Address
	DisableOffload Verb = "plain"        // no checksum offload on the link ID
	DropChassis    Verb = "drop chassis" // the row of the node ID
)

// Action is one step of a plan.
type Action struct {
	Part   Part
	Verb   Verb
	DB     DB     // for database verbs
	Name   string // for daemons
	Argv   []string
	File   string
	ID     string
	Addr   string
	Others []string
}

// String formats the action for logs and golden files.
func (a Action) String() string {
	words := []string{string(a.Verb)}
	for _, w := range []string{string(a.DB), a.Name, a.File, a.ID, a.Addr, strings.Join(a.Others, " "), strings.Join(a.Argv, " ")} {
		if w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// Problem is a problem in words, and what the operator should do next; Next is
// empty if Basalt resolves the problem by itself.
type Problem struct {
	Part Part
	What string
	Next string
}

func (p Problem) String() string {
	if p.Next == "" {
		return p.What
	}
	return fmt.Sprintf("%s (%s)", p.What, p.Next)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
