package store

import (
	"github.com/basalt-gpu/basalt/api"
)

// An entry that holds in one term only has the successor of its batch's version
// as its first byte, then eight bytes of the term, then the rest of the batch.
func termVersion(batch byte) byte { return batch + 1 }

func ofOneTerm(version byte) bool {
	return version > 0 && version%2 == 0 && version <= termVersion(comparedVersion)
}

func pastTerm() *api.Error {
	return api.Errorf(api.CodeConflict, "another node has led the cluster meanwhile").WithHint("decide again")
}
