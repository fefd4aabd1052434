// Package backuptest creates restic repositories for tests. Opening one that
// "restic init" has created takes half a second of CPU time, because of the
// key derivation from its password, and tests open theirs a hundred times:
// here the derivation has the lowest cost that scrypt allows.
//
// The format is that of restic's "References: Design", repository version 2.
package backuptest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/poly1305" //nolint:staticcheck // required by the format
	"golang.org/x/crypto/scrypt"
)

// Parameters of scrypt, with the lowest cost.
const (
	costN = 2
	costR = 1
	costP = 1
)

// key is a key of a repository, for encryption by AES-256 in counter mode and
// authentication by Poly1305-AES.
type key struct {
	MAC struct {
		K []byte `json:"k"`
		R []byte `json:"r"`
	} `json:"mac"`
	Encrypt []byte `json:"encrypt"`
}

// newKey splits 64 bytes into a key.
func newKey(raw []byte) (k key) {
	k.Encrypt, k.MAC.K, k.MAC.R = raw[:32], raw[32:48], raw[48:]
	return k
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// seal encrypts and authenticates text. The result is nonce, ciphertext and
// MAC.
func (k key) seal(text []byte) ([]byte, error) {
	nonce := random(aes.BlockSize)
	block, err := aes.NewCipher(k.Encrypt)
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(text))
	cipher.NewCTR(block, nonce).XORKeyStream(out, text)
	pad, err := aes.NewCipher(k.MAC.K)
	if err != nil {
		return nil, err
	}
	var once [32]byte
	copy(once[:16], k.MAC.R)
	pad.Encrypt(once[16:], nonce)
	var tag [poly1305.TagSize]byte
	poly1305.Sum(&tag, out, &once)
	return append(append(nonce, out...), tag[:]...), nil
}

// sealed returns the sealed JSON of v.
func (k key) sealed(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return k.seal(text)
}

// files returns the files of a new, empty repository with the password, by
// their paths in it.
func files(t testing.TB, password string) map[string][]byte {
	t.Helper()
	master := newKey(random(64))
	config, err := master.sealed(map[string]any{"version": 2, "id": hex.EncodeToString(random(32)), "chunker_polynomial": "25b468838dcb75"})
	if err != nil {
		t.Fatal(err)
	}
	salt := random(64)
	stretched, err := scrypt.Key([]byte(password), salt, costN, costR, costP, 64)
	if err != nil {
		t.Fatal(err)
	}
	data, err := newKey(stretched).sealed(master)
	if err != nil {
		t.Fatal(err)
	}
	opens, err := json.Marshal(map[string]any{"created": time.Now(), "username": "test", "hostname": "test",
		"kdf": "scrypt", "N": costN, "r": costR, "p": costP, "salt": salt, "data": data})
	if err != nil {
		t.Fatal(err)
	}
	name := sha256.Sum256(opens)
	return map[string][]byte{"config": config, "keys/" + hex.EncodeToString(name[:]): opens}
}

// Directory creates a new, empty repository with the password in dir.
func Directory(t testing.TB, dir, password string) {
	t.Helper()
	for _, d := range []string{"data", "index", "keys", "locks", "snapshots"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, content := range files(t, password) {
		if err := os.WriteFile(filepath.Join(dir, path), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Bucket creates a new, empty repository with the password in a bucket: url is
// the bucket's, in a store that requires no signatures.
func Bucket(t testing.TB, url, password string) {
	t.Helper()
	for path, content := range files(t, password) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url+"/"+path, bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Fatalf("PUT %s = %s, want 200", r.URL, resp.Status)
		}
	}
}
