package sds

import "github.com/basalt-gpu/basalt/api"

// Claim is what a store records about a volume's ownership.
type Claim struct {
	Owner
	// Released means that the volume is not in use, but that the epoch still
	// counts.
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

// Decide returns an error if want must not own the volume with the claim have
// (nil: never claimed). write is false if want has the claim already.
func (want Owner) Decide(id api.VolumeID, have *Claim) (write bool, err error) {
	switch {
	case have == nil || have.Epoch < want.Epoch:
		return true, nil
	case have.Node != want.Node:
		return false, owned(id, have)
	case have.Epoch == want.Epoch:
		return have.Released, nil
	case have.Released:
		// The node's later claim has ended: this one is late.
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
