package cli_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/basalt-gpu/basalt/hypervisor/iso9660"
)

// makeMedium implements the script command medium NAME VERSION: it creates the medium of a
// release in the directory NAME and in NAME.iso, and its key in NAME.gpg.
func makeMedium(ts *testscript.TestScript, _ bool, args []string) {
	name, version := args[0], args[1]
	key, err := openpgp.NewEntity("test", "", "", nil)
	ts.Check(err)
	dir := filepath.Join(ts.MkAbs(name), "packages")
	ts.Check(os.MkdirAll(dir, 0o755))
	var index, in, public, image bytes.Buffer
	for _, p := range []string{"basalt", "basalt-guest-tools"} {
		file, content := p+"_"+version+"_amd64.deb", p+" "+version
		ts.Check(os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644))
		fmt.Fprintf(&index, "Package: %s\nVersion: %s\nArchitecture: amd64\nFilename: ./%s\nSize: %d\nSHA256: %x\n\n", p, version, file, len(content), sha256.Sum256([]byte(content)))
	}
	w, err := clearsign.Encode(&in, key.PrivateKey, nil)
	ts.Check(err)
	fmt.Fprintf(w, "Date: Sat, 28 Nov 2026 14:00:00 UTC\nSHA256:\n %x %d Packages\n", sha256.Sum256(index.Bytes()), index.Len())
	ts.Check(errors.Join(w.Close(), key.Serialize(&public)))
	ts.Check(os.WriteFile(filepath.Join(dir, "Packages"), index.Bytes(), 0o644))
	ts.Check(os.WriteFile(filepath.Join(dir, "InRelease"), in.Bytes(), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs(name+".gpg"), public.Bytes(), 0o644))
	ts.Check(iso9660.Write(&image, "BASALT", os.DirFS(ts.MkAbs(name)), time.Unix(0, 0)))
	ts.Check(os.WriteFile(ts.MkAbs(name+".iso"), image.Bytes(), 0o644))
}
