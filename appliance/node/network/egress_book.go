package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/billing/meter"
	"github.com/basalt-gpu/basalt/sdn"
)

// egressBook is the persistent state of a node's egress metering.
type egressBook struct {
	Version  int                       `json:"version"`
	Accounts map[string]*egressAccount `json:"accounts"` // by owner
	// Pending has the records that may not have been committed yet.
	Pending []api.Command `json:"pending,omitempty"`

	written bool // Pending is on the disk
}

type egressAccount struct {
	Resource meter.Resource `json:"resource"`
	Traffic  meter.Traffic  `json:"traffic"`
}

const egressVersion = 1

// count adds the counters' values. A counter whose exit is not requested any more
// is attributed to its owner by its name.
func (b *egressBook) count(seen []sdn.Egress, owners map[string]meter.Resource) {
	of := map[string]string{} // owner by counter
	for owner, a := range b.Accounts {
		if r, ok := owners[owner]; ok {
			a.Resource = r // its name may have changed
		}
		for counter := range a.Traffic.Counted {
			of[counter] = owner
		}
	}
	counts := map[string]map[string]uint64{} // by owner and counter
	for _, e := range seen {
		owner := e.Owner
		if owner == "" {
			owner = of[e.Counter]
		}
		if b.Accounts[owner] == nil {
			r, ok := owners[owner]
			if !ok {
				continue // the owner is unknown
			}
			b.Accounts[owner] = &egressAccount{Resource: r}
		}
		if counts[owner] == nil {
			counts[owner] = map[string]uint64{}
		}
		counts[owner][e.Counter] = e.Bytes
	}
	for owner, now := range counts {
		b.Accounts[owner].Traffic = b.Accounts[owner].Traffic.Count(now)
	}
}

// record creates records of what is owed. There must be no pending ones.
func (b *egressBook) record(now time.Time) {
	for _, owner := range slices.Sorted(maps.Keys(b.Accounts)) {
		a := b.Accounts[owner]
		next, cmds := a.Traffic.Record(a.Resource, now)
		a.Traffic, b.Pending = next, append(b.Pending, cmds...)
	}
	b.written = false
}

// forget removes the accounts whose owners and counters do not exist any more.
func (b *egressBook) forget(seen []sdn.Egress, owners map[string]meter.Resource) {
	counted := map[string]bool{}
	for _, e := range seen {
		counted[e.Counter] = true
	}
	maps.DeleteFunc(b.Accounts, func(owner string, a *egressAccount) bool {
		_, there := owners[owner]
		for counter := range a.Traffic.Counted {
			there = there || counted[counter]
		}
		return !there && a.Traffic.Owed == 0
	})
}

func readEgressBook(path string) (*egressBook, error) {
	b := &egressBook{Version: egressVersion, written: true, Accounts: map[string]*egressAccount{}}
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, b); err != nil {
		return nil, fmt.Errorf("read %s: %w; if you move it away, traffic counted since the switch started is charged again", path, err)
	}
	if b.Version != egressVersion {
		return nil, fmt.Errorf("%s has version %d, this basaltd supports %d: install a newer release", path, b.Version, egressVersion)
	}
	for owner, a := range b.Accounts {
		if a == nil || a.Resource.ID != owner {
			return nil, fmt.Errorf("%s: the account of %s belongs to another owner", path, owner)
		}
	}
	return b, nil
}

// write writes the accounts with traffic.
func (b *egressBook) write(path string) error {
	used := *b
	used.Accounts = map[string]*egressAccount{}
	for owner, a := range b.Accounts {
		if a.Traffic.Seq > 0 || a.Traffic.Owed > 0 {
			used.Accounts[owner] = a
		}
	}
	raw, err := json.Marshal(used)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(path, raw, 0o600); err != nil {
		return err
	}
	b.written = true
	return nil
}
