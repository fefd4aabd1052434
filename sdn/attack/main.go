// Command attack is run as root in a guest by tests. It tries what a guest
// could do to others and prints a line of JSON for each attack; whether frames
// arrived is checked on the victims' side. It reads what to attack from its
// input (Config).
package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"time"
)

// pause between frames, so that the switch's queues do not lose them.
const pause = 5 * time.Millisecond

// End is one end of a conversation.
type End struct {
	MAC  string     `json:"mac"`
	Four netip.Addr `json:"four"`
	Six  netip.Addr `json:"six"`
}

// as returns the end's address of the same family as the other.
func (e End) as(other netip.Addr) netip.Addr {
	if other.Is4() {
		return e.Four
	}
	return e.Six
}

// Config describes the hosts in the test.
type Config struct {
	Card      string       `json:"card"`
	Self      End          `json:"self"`
	Neighbour End          `json:"neighbour"` // in the same network
	Gateway   End          `json:"gateway"`
	Metadata  string       `json:"metadata"` // its MAC
	Unserved  bool         `json:"unserved"` // the metadata address has no server
	Foreign   []End        `json:"foreign"`  // guests of other projects
	Hosts     []netip.Addr `json:"hosts"`    // addresses of the nodes
	Ports     []uint16     `json:"ports"`    // ports that are listened on there
}

// Result is the result of one attack.
type Result struct {
	Attack string `json:"attack"`
	// Bad and Good are marks in frames: no other host may see Bad, and the
	// neighbor must see Good.
	Bad  string `json:"bad,omitempty"`
	Good string `json:"good,omitempty"`
	// Answer describes the answer to a probe.
	Answer  string `json:"answer,omitempty"`
	Allowed bool   `json:"allowed,omitempty"` // an answer is required
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(1)
	}
}

func run() error {
	var c Config
	if err := json.NewDecoder(os.Stdin).Decode(&c); err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	w, err := open(c.Card)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	// Repeat: the first packet of a kind takes a slower path, and a busy switch
	// drops some.
	const rounds = 3
	all := frames(c)
	for round := range rounds {
		for _, a := range all {
			r := Result{Attack: a.name, Bad: "bad:" + a.name + ".", Good: "good:" + a.name + "."}
			for _, fs := range [][][]byte{a.bad(r.Bad), a.good(r.Good)} {
				if err := w.send(fs); err != nil {
					return fmt.Errorf("%s: %w", a.name, err)
				}
				time.Sleep(pause)
			}
			if round > 0 {
				continue
			}
			if err := out.Encode(r); err != nil {
				return err
			}
		}
	}
	for _, r := range append(w.probe(probes(c)), dials(c)...) {
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
