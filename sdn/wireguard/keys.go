package wireguard

import (
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

// keyFile is the prefix of the files with private keys; the generation follows.
const keyFile = "key-"

// Open reports whether the node of the folder receives encrypted packets: it has keys.
// It works without the running node, for the firewall.
func Open(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, keyFile+"*"))
	return err == nil && len(files) > 0
}

// privateKey returns the private key of a generation, which it creates if there is none
// that can be read: the other nodes follow another key as well.
func privateKey(dir string, generation int) (k key, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return k, fmt.Errorf("folder of the WireGuard keys: %w", err)
	}
	path := filepath.Join(dir, keyFile+strconv.Itoa(generation))
	text, err := os.ReadFile(path)
	if err == nil {
		if k, err = parseKey(strings.TrimSpace(string(text))); err == nil {
			return k, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return k, fmt.Errorf("read WireGuard key: %w", err)
	}
	if _, err := rand.Read(k[:]); err != nil {
		return k, fmt.Errorf("create WireGuard key: %w", err)
	}
	k[0], k[31] = k[0]&248, k[31]&127|64 // RFC 7748, section 5
	if err := atomicfile.WriteFile(path, []byte(k.String()+"\n"), 0o600); err != nil {
		return k, fmt.Errorf("write WireGuard key: %w", err)
	}
	return k, nil
}

// removeKeys removes the private keys of other generations.
func removeKeys(dir string, keep []int) error {
	files, err := filepath.Glob(filepath.Join(dir, keyFile+"*"))
	if err != nil {
		return fmt.Errorf("list WireGuard keys: %w", err)
	}
	for _, path := range files {
		generation, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), keyFile))
		if err == nil && slices.Contains(keep, generation) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove WireGuard key: %w", err)
		}
	}
	return nil
}

// public returns the public key of a private one.
func (k key) public() (key, error) {
	private, err := ecdh.X25519().NewPrivateKey(k[:])
	if err != nil {
		return key{}, fmt.Errorf("public key of the WireGuard key: %w", err)
	}
	return key(private.PublicKey().Bytes()), nil
}
