package pki

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// Files of an identity.
const (
	bundleFile = "ca.pem"
	certFile   = "node.crt"
	keyFile    = "node.key"
	newKeyFile = "node.key.new"
)

// renameFile renames a file within dir. The change is on disk when it returns.
func renameFile(dir, from, to string) error {
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		return err
	}
	return atomicfile.Sync(dir)
}

// readSmall reads a file that is at most as large as a bundle may be.
func readSmall(dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxBundle {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxBundle)
	}
	return os.ReadFile(path)
}

// settle completes or discards a renewal that was interrupted, and returns the key
// that belongs to the certificate.
func settle(dir string, certPEM []byte) (keyPEM []byte, err error) {
	keyPEM, err = readSmall(dir, keyFile)
	if err == nil && matches(certPEM, keyPEM) {
		// A file that cannot be removed is overwritten by the next renewal. A node
		// with a read-only disk must still have its identity.
		_ = os.Remove(filepath.Join(dir, newKeyFile))
		return keyPEM, nil
	}
	if newKey, newErr := readSmall(dir, newKeyFile); newErr == nil && matches(certPEM, newKey) {
		return newKey, renameFile(dir, newKeyFile, keyFile)
	}
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s does not belong to %s", filepath.Join(dir, keyFile), certFile)
}

func matches(certPEM, keyPEM []byte) bool {
	leaf, err := parseLeaf(certPEM)
	if err != nil {
		return false
	}
	key, err := decodeKey(keyPEM)
	return err == nil && key.PublicKey.Equal(leaf.PublicKey)
}
