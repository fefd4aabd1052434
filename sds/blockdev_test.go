package sds

import (
	"encoding/json"
	"testing"
)

func TestBlockDev(t *testing.T) {
	image := &Source{Path: "/i", Format: Raw}
	for name, c := range map[string]struct {
		source Source
		want   string
	}{
		"raw": {*image, `{"driver":"raw","file":{"driver":"file","filename":"/i"}}`},
		"chain": {
			Source{Path: "/a", Format: QCOW2, Encrypted: true, Backing: image},
			`{"backing":{"driver":"raw","file":{"driver":"file","filename":"/i"}},"driver":"qcow2",` +
				`"encrypt":{"format":"luks","key-secret":"k"},"file":{"driver":"file","filename":"/a"}}`,
		},
		"alone": {
			Source{Path: "/a", Format: QCOW2},
			`{"backing":null,"driver":"qcow2","file":{"driver":"file","filename":"/a"}}`,
		},
		"rbd": {
			Source{RBD: &RBD{Pool: "p", Image: "i", Snapshot: "s", Monitors: []string{"10.0.0.1:6789", "[fd00::1]:3300"}, User: "u"}, Format: Raw, Encrypted: true},
			`{"driver":"luks","file":{"driver":"rbd","image":"i","key-secret":"c","pool":"p",` +
				`"server":[{"host":"10.0.0.1","port":"6789"},{"host":"fd00::1","port":"3300"}],"snapshot":"s","user":"u"},` +
				`"key-secret":"k"}`,
		},
	} {
		if got, err := json.Marshal(c.source.BlockDev(false, "k", "c")); err != nil || string(got) != c.want[:len(c.want)-1]+`,"read-only":false}` {
			t.Errorf("BlockDev of %s = %s, %v, want %s with read-only false", name, got, err, c.want)
		}
	}
}
