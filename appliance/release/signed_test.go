package release_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"testing"
	"testing/fstest"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"

	"github.com/basalt-gpu/basalt/appliance/release"
)

// signed returns a medium with that index, signed by key.
func signed(t testing.TB, key *openpgp.Entity, index string) fstest.MapFS {
	t.Helper()
	var in bytes.Buffer
	w, err := clearsign.Encode(&in, key.PrivateKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(w, "Date: Sat, 28 Nov 2026 14:00:00 UTC\nSHA256:\n %x %d Packages\n", sha256.Sum256([]byte(index)), len(index))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"packages/InRelease": {Data: in.Bytes()}, "packages/Packages": {Data: []byte(index)}}
}

// Versions are ordered as dpkg orders them.
func TestCompare(t *testing.T) {
	t.Parallel()
	versions := []string{
		"0~20261128105447.d80310e7d", "0~20261128105447.d80310e7d+dirty", "0~unknown", "0", "1.2.3~rc1", "1.2.3", "1.2.3+5.gabcdef", "1.2.3+10.gabc", "1.2.3-1", "1.2.3-1+b1",
		"1.10", "01.10", "1:1.0", "2.0a", "2.0+", "2.0.0",
	}
	for _, a := range versions {
		for _, b := range versions {
			op := map[int]string{-1: "lt", 0: "eq", 1: "gt"}[release.Compare(a, b)]
			if err := exec.Command("dpkg", "--compare-versions", a, op, b).Run(); err != nil {
				t.Errorf("Compare(%q, %q) = %s, but dpkg does not agree", a, b, op)
			}
		}
	}
}
