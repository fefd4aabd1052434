package deploy

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Client is the user of Basalt's own storage driver and of the machines: it
// may use the pools and nothing else.
const Client = "basalt"

// Keys are the keys of a cluster, created once and stored in the control
// plane's store. Those of mgrs and OSDs are created by the nodes and stored by
// the mons.
type Keys struct {
	Mon    string `json:"mon"`
	Admin  string `json:"admin"`
	Client string `json:"client"`
}

// NewKeys generates keys from random.
func NewKeys(random io.Reader, now time.Time) (Keys, error) {
	var k Keys
	for _, into := range []*string{&k.Mon, &k.Admin, &k.Client} {
		var err error
		if *into, err = newKey(random, now); err != nil {
			return Keys{}, err
		}
	}
	return k, nil
}

// newKey returns a CryptoKey (src/auth/Crypto.cc, encode): type 1 (AES), time
// of creation, length and bytes of the secret; little-endian, in base64.
func newKey(random io.Reader, now time.Time) (string, error) {
	b := binary.LittleEndian.AppendUint16(nil, 1)
	b = binary.LittleEndian.AppendUint32(b, uint32(now.Unix()))
	b = binary.LittleEndian.AppendUint32(b, uint32(now.Nanosecond()))
	b = binary.LittleEndian.AppendUint16(b, 16)
	var secret [16]byte
	if _, err := io.ReadFull(random, secret[:]); err != nil {
		return "", fmt.Errorf("generate Ceph key: %w", err)
	}
	return base64.StdEncoding.EncodeToString(append(b, secret[:]...)), nil
}

// Validate returns what is wrong with the keys, in an error that does not
// contain them.
func (k Keys) Validate() error {
	for name, key := range map[string]string{"mon": k.Mon, "admin": k.Admin, "client": k.Client} {
		if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) != 28 {
			return api.Errorf(api.CodeInvalid, "the key %q of the Ceph cluster is damaged", name)
		}
	}
	return nil
}

type capability struct{ daemon, may string }

type entity struct {
	name, key string
	caps      []capability
}

func (k Keys) mon() entity { return entity{"mon.", k.Mon, []capability{{"mon", "allow *"}}} }

func (k Keys) admin() entity {
	return entity{"client.admin", k.Admin, []capability{{"mds", "allow *"}, {"mgr", "allow *"}, {"mon", "allow *"}, {"osd", "allow *"}}}
}

func (k Keys) client() entity {
	return entity{"client." + Client, k.Client, []capability{{"mgr", "profile rbd"}, {"mon", "profile rbd"}, {"osd", "profile rbd"}}}
}

// keyring returns the content of a Ceph keyring file.
func keyring(all ...entity) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "[%s]\n\tkey = %s\n", e.name, e.key)
		for _, c := range e.caps {
			fmt.Fprintf(&b, "\tcaps %s = \"%s\"\n", c.daemon, c.may)
		}
	}
	return b.String()
}
