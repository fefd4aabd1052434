package sds

import "github.com/basalt-gpu/basalt/api"

// Claim is what a store keeps about a volume's ownership.
type Claim struct {
	Owner
	// Released: nobody uses the volume, but the epoch still counts.
	Released bool
}

// Validate returns what is wrong with an owner: an *api.Error, or nil.
func (o Owner) Validate() error {
	if err := CheckID(string(o.Node)); err != nil {
		return err
	}
	if o.Epoch < 0 {
		return api.Errorf(api.CodeInvalid, "invalid epoch %d", o.Epoch).At("epoch")
	}
	return nil
}

// Decide whether want may own the volume that have claims (nil: nobody ever
// did). write is false when the claim stands already.
func (want Owner) Decide(id api.VolumeID, have *Claim) (write bool, err error) {
	switch {
	case have == nil || have.Epoch < want.Epoch:
		return true, nil
	case have.Node != want.Node:
		return false, owned(id, have)
	case have.Epoch == want.Epoch:
		return have.Released, nil
	case have.Released:
		// The node's later claim is over: this one is a straggler.
		return false, owned(id, have)
	}
	return false, nil
}

func owned(id api.VolumeID, have *Claim) error {
	verb := "belongs to"
	if have.Released {
		verb = "last belonged to"
	}
	return api.Errorf(api.CodeState, "volume %s %s node %s, epoch %d", id, verb, have.Node, have.Epoch).
		WithHint("only a later assignment can take it over")
}
