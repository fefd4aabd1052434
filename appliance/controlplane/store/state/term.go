package state

import (
	"encoding/binary"

	"github.com/basalt-gpu/basalt/api"
)

// An entry that holds in one term only has the successor of its batch's version
// as its first byte, then eight bytes of the term, then the rest of the batch.
func termVersion(batch byte) byte { return batch + 1 }

func ofOneTerm(version byte) bool {
	return version > 0 && version%2 == 0 && version <= termVersion(comparedVersion)
}

// InTerm makes an entry's data hold in one term only.
func InTerm(term uint64, raw []byte) []byte {
	out := binary.BigEndian.AppendUint64([]byte{termVersion(raw[0])}, term)
	return append(out, raw[1:]...)
}

// OfTerm is the batch in an entry's data, without its term, and whether the
// entry, which was written in the term, holds: it is for that one or for any.
func OfTerm(data []byte, term uint64) (raw []byte, holds bool) {
	const header = 1 + 8
	if len(data) < header || !ofOneTerm(data[0]) {
		return data, true
	}
	raw = append([]byte{data[0] - 1}, data[header:]...) // the version of the batch itself
	return raw, binary.BigEndian.Uint64(data[1:]) == term
}

// PastTerm is the answer of a batch that does not hold.
func PastTerm() *api.Error {
	return api.Errorf(api.CodeConflict, "another node has been the leader since").WithHint("read again and retry")
}
