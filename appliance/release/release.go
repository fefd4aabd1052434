// Package release reads the packages that an installation medium contains for existing
// nodes: a signed repository of packages in apt's format.
//
//	packages/InRelease  (OpenPGP) ─► SHA-256 of packages/Packages ─► SHA-256 of each .deb
//
// Nothing in a repository is trusted before its signature was verified with a key that
// the caller trusts.
package release

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"

	"github.com/basalt-gpu/basalt/api"
)

// Folder is the folder of a medium that contains the repository.
const Folder = "packages"

// Limits of what is read, in bytes and in packages.
const (
	maxReleaseBytes = 1 << 20
	maxIndexBytes   = 16 << 20
	maxKeyBytes     = 1 << 20
	maxPackages     = 10_000
)

// Release is the content of a medium. Its packages are in the file system from which it
// was read; compare them with their checksums when reading them.
type Release struct {
	Signer   string    // fingerprint of the key
	At       time.Time // when it was created
	Packages []Package
}

// Package describes a package of a release.
type Package struct {
	Name, Version, Architecture string
	Path                        string // on the medium
	SizeBytes                   int64
	SHA256                      string
}

// Keys reads the keys from a file in either format that gpg writes.
func Keys(r io.Reader) (openpgp.EntityList, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxKeyBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxKeyBytes {
		return nil, fmt.Errorf("a file of keys has at most %d bytes", maxKeyBytes)
	}
	read := openpgp.ReadKeyRing
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("-----BEGIN")) {
		read = openpgp.ReadArmoredKeyRing
	}
	keys, err := read(bytes.NewReader(b))
	if err == nil && len(keys) == 0 {
		err = errors.New("it has no OpenPGP key")
	}
	return keys, err
}

// Read verifies the signature of a medium's repository and reads its index. It returns
// an *api.Error for an invalid repository, and fs.ErrNotExist if the medium has none.
func Read(medium fs.FS, keys openpgp.EntityList) (Release, error) {
	raw, err := readFile(medium, path.Join(Folder, "InRelease"), maxReleaseBytes)
	if err != nil {
		return Release{}, err
	}
	text, signer, err := verify(raw, keys)
	if err != nil {
		return Release{}, err
	}
	r := Release{Signer: signer}
	head, err := parseRelease(text)
	if err != nil {
		return r, err
	}
	r.At = head.at
	index, err := readFile(medium, path.Join(Folder, "Packages"), maxIndexBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return r, invalid("the medium lacks its list of packages, %s/Packages", Folder)
	}
	if err != nil {
		return r, err
	}
	if sum := sha256.Sum256(index); int64(len(index)) != head.size || hex.EncodeToString(sum[:]) != head.sum {
		return r, invalid("the list of packages is not the one that was signed").WithHint("the medium is damaged or was changed: fetch it again, and compare its checksum")
	}
	r.Packages, err = parseIndex(index)
	return r, err
}

// Find returns the package with that name; there must be exactly one.
func (r Release) Find(name string) (found Package, err error) {
	n := 0
	for _, p := range r.Packages {
		if p.Name == name {
			found = p
			n++
		}
	}
	if n != 1 {
		return found, invalid("the medium has %d packages %s, want 1", n, name)
	}
	return found, nil
}

func invalid(format string, args ...any) *api.Error {
	return api.Errorf(api.CodeInvalid, format, args...)
}

func readFile(medium fs.FS, name string, most int64) ([]byte, error) {
	f, err := medium.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(b)) > most {
		return nil, invalid("%s has more than %d bytes", name, most)
	}
	return b, nil
}

// verify returns the signed text and the fingerprint of its signer. It rejects unsigned
// text before or after it.
func verify(raw []byte, keys openpgp.EntityList) (text []byte, signer string, err error) {
	block, rest := clearsign.Decode(raw)
	if block == nil || !bytes.HasPrefix(raw, []byte("-----BEGIN PGP SIGNED MESSAGE-----")) || len(bytes.TrimSpace(rest)) > 0 {
		return nil, "", invalid("the medium's release file is not signed, or only in part").WithHint("fetch the medium again")
	}
	by, err := block.VerifySignature(keys, nil)
	if err != nil {
		return nil, "", invalid("the medium is not signed by a key that is trusted here: %s", err).
			WithHint("a medium of somebody else has another key: see Keys of releases in docs/operations.md")
	}
	return block.Plaintext, hex.EncodeToString(by.PrimaryKey.Fingerprint), nil
}

// head is the part of a Release file about the Packages file.
type head struct {
	at   time.Time
	sum  string
	size int64
}

func parseRelease(text []byte) (h head, err error) {
	within := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if !strings.HasPrefix(line, " ") {
			key, value, _ := strings.Cut(line, ":")
			within = key == "SHA256"
			if key == "Date" {
				if h.at, err = time.Parse(time.RFC1123, strings.TrimSpace(value)); err != nil {
					return h, invalid("the medium's release file has no date that can be read: %q", clip(value))
				}
			}
			continue
		}
		f := strings.Fields(line)
		if !within || len(f) != 3 || f[2] != "Packages" {
			continue
		}
		size, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || !api.IsSHA256(f[0]) || h.sum != "" {
			return h, invalid("the medium's release file is malformed: %q", clip(line))
		}
		h.sum, h.size = f[0], size
	}
	if h.sum == "" || h.at.IsZero() {
		return h, invalid("the medium's release file names no list of packages, or no date")
	}
	return h, nil
}

// parseIndex reads stanzas of "Key: value" lines that are separated by empty lines.
func parseIndex(text []byte) (all []Package, err error) {
	fields := map[string]string{}
	end := func() error {
		if len(fields) == 0 {
			return nil
		}
		p, err := newPackage(fields)
		all = append(all, p)
		clear(fields)
		if err == nil && len(all) > maxPackages {
			err = invalid("the medium has more than %d packages", maxPackages)
		}
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxIndexBytes)
	for lines.Scan() {
		line := lines.Text()
		key, value, ok := strings.Cut(line, ":")
		switch {
		case strings.TrimSpace(line) == "":
			if err := end(); err != nil {
				return nil, err
			}
		case line[0] == ' ' || line[0] == '\t': // continues the field above
		case !ok:
			return nil, invalid("the medium's list of packages has a line that is malformed: %q", clip(line))
		default:
			fields[key] = strings.TrimSpace(value)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return all, end()
}

func newPackage(f map[string]string) (Package, error) {
	size, err := strconv.ParseInt(f["Size"], 10, 64)
	name := strings.TrimPrefix(f["Filename"], "./")
	p := Package{Name: f["Package"], Version: f["Version"], Architecture: f["Architecture"], Path: path.Join(Folder, name), SizeBytes: size, SHA256: f["SHA256"]}
	if err != nil || size < 1 || size > api.MaxUpgradePackageBytes || p.Name == "" || !ValidVersion(p.Version) || !api.IsSHA256(p.SHA256) || !fs.ValidPath(name) || name == "." {
		return p, invalid("the medium's list of packages has an entry that is malformed: %q", clip(p.Name))
	}
	return p, nil
}

// clip shortens text from a medium for an error message.
func clip(s string) string { return s[:min(len(s), 64)] }
