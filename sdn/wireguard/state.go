package wireguard

import (
	"net/netip"
	"slices"
)

// Port is the UDP port of the tunnels that are encrypted (RFC 8926, section 3.3).
const Port = 6081

// Ports are the UDP ports on which nodes receive encrypted packets. Generations of keys
// use them in turn, since two exist during a rotation.
var Ports = [2]uint16{51820, 51821}

// PortOf returns the port of a generation of keys.
func PortOf(generation int) uint16 { return Ports[generation%2] }

// Wanted is what the operator has set.
type Wanted struct {
	On bool
	// Rotation counts the requested changes of keys.
	Rotation int64
}

// State is what the cluster has decided. The zero State is off.
type State struct {
	// Serial counts the decisions.
	Serial int `json:"serial,omitempty"`
	// Generation is the newest generation of keys, from 1; it never decreases.
	Generation int `json:"generation,omitempty"`
	// Rotation is the Wanted.Rotation for which it was begun.
	Rotation int64 `json:"rotation,omitempty"`
	// Keys are the generations for which nodes have interfaces, the oldest first; at
	// most two.
	Keys []int `json:"keys,omitempty"`
	// Send is the generation with which nodes send; 0: in plain.
	Send int `json:"send,omitempty"`
	// Enforced means that nodes drop plain packets.
	Enforced bool `json:"enforced,omitempty"`
}

// On reports whether nodes have interfaces.
func (s State) On() bool { return len(s.Keys) > 0 }

// Encrypted is the stage at which only encrypted packets are sent and accepted.
const Encrypted = "encrypted"

// Stage returns the name of the state for people.
func (s State) Stage() string {
	switch {
	case !s.On():
		return "off"
	case s.Send == 0:
		return "preparing"
	case s.Send != s.Generation:
		return "rotating"
	case s.Enforced && len(s.Keys) == 1:
		return Encrypted
	}
	return "switching"
}

// Key is a node's key of one generation.
type Key struct {
	Generation int    `json:"generation"`
	Public     string `json:"public"` // base64
	// Connected are the IDs of the nodes with which packets were exchanged recently,
	// sorted.
	Connected []string `json:"connected,omitempty"`
}

// Report is what a node has carried out.
type Report struct {
	// Address is the end of the node's tunnels, where it also receives encrypted packets.
	Address netip.Addr `json:"address,omitzero"`
	// Serial is that of the decision.
	Serial int   `json:"serial,omitempty"`
	Keys   []Key `json:"keys,omitempty"` // oldest first
	// Send is the generation that it sends with, and Enforced whether it drops plain
	// packets.
	Send     int  `json:"send,omitempty"`
	Enforced bool `json:"enforced,omitempty"`
	// Problem is why it could not carry out the decision; empty: it could.
	Problem string `json:"problem,omitempty"`
}

// Key returns the node's key of a generation.
func (r Report) Key(generation int) (Key, bool) {
	n := slices.IndexFunc(r.Keys, func(k Key) bool { return k.Generation == generation })
	if n < 0 {
		return Key{}, false
	}
	return r.Keys[n], true
}
