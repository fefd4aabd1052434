package state

import (
	"encoding/binary"

	"github.com/basalt-gpu/basalt/api"
)

// termVersion returns the version of a batch that is valid in one term only: the
// successor of the batch's version. Such an entry has that byte, then eight bytes of
// the term, then the rest of the batch.
func termVersion(batch byte) byte { return batch + 1 }

func ofOneTerm(version byte) bool {
	return version > 0 && version%2 == 0 && version <= termVersion(comparedVersion)
}

// InTerm restricts an entry's data to one term.
func InTerm(term uint64, raw []byte) []byte {
	out := binary.BigEndian.AppendUint64([]byte{termVersion(raw[0])}, term)
	return append(out, raw[1:]...)
}

// OfTerm returns the batch in an entry's data, without its term; holds reports whether
// the entry, which was written in the given term, is valid: it is for that term or for
// any.
func OfTerm(data []byte, term uint64) (raw []byte, holds bool) {
	const header = 1 + 8
	if len(data) < header || !ofOneTerm(data[0]) {
		return data, true
	}
	raw = append([]byte{data[0] - 1}, data[header:]...) // the version of the batch itself
	return raw, binary.BigEndian.Uint64(data[1:]) == term
}

// PastTerm returns the answer to a batch whose term has ended.
func PastTerm() *api.Error {
	return api.Errorf(api.CodeConflict, "another node has been the leader since").WithHint("read again and retry")
}
