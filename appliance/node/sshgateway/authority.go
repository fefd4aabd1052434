package sshgateway

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/sealed"
)

// authorityID is the ID of the cluster's only SSHAuthority.
const authorityID = "sshauthority-cluster"

// authoritySpec is the stored object: private keys in OpenSSH's format, sealed.
type authoritySpec struct {
	HostKey string `json:"hostKey"`
	UserCA  string `json:"userCA"`
}

// Authority has the gateway's host key, which is the same on all nodes, and the CA
// whose certificates guests accept. They are generated when first needed.
type Authority struct {
	store  sealed.Store
	sealer sealed.Sealer

	mu       sync.Mutex // guards the following fields; held while they are read
	host, ca ssh.Signer
}

// NewAuthority returns an authority whose keys are read from the store when first
// needed.
func NewAuthority(s sealed.Store, sealer sealed.Sealer) *Authority {
	return &Authority{store: s, sealer: sealer}
}

func (a *Authority) load(ctx context.Context) (host, ca ssh.Signer, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.host != nil {
		return a.host, a.ca, nil
	}
	o, err := sealed.Object(ctx, a.store, api.KindSSHAuthority, authorityID, a.make)
	if err != nil {
		return nil, nil, fmt.Errorf("keys of the SSH gateway: %w", err)
	}
	var s authoritySpec
	if err := json.Unmarshal(o.Spec, &s); err != nil {
		return nil, nil, fmt.Errorf("keys of the SSH gateway: %w", err)
	}
	if ca, err = a.open(ctx, s.UserCA); err != nil {
		return nil, nil, err
	}
	if host, err = a.open(ctx, s.HostKey); err != nil {
		return nil, nil, err
	}
	a.host, a.ca = host, ca
	return host, ca, nil
}

// make generates the keys and returns their spec.
func (a *Authority) make(ctx context.Context) (any, error) {
	var s authoritySpec
	for what, into := range map[string]*string{"basalt gateway": &s.HostKey, "basalt user CA": &s.UserCA} {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		block, err := ssh.MarshalPrivateKey(private, what)
		if err != nil {
			return nil, err
		}
		if *into, err = a.sealer.Seal(ctx, string(pem.EncodeToMemory(block))); err != nil {
			return nil, fmt.Errorf("seal the key of the %s: %w", what, err)
		}
	}
	return s, nil
}

func (a *Authority) open(ctx context.Context, sealed string) (ssh.Signer, error) {
	text, err := a.sealer.Open(ctx, sealed)
	if err != nil {
		return nil, fmt.Errorf("keys of the SSH gateway: %w", err)
	}
	return ssh.ParsePrivateKey([]byte(text))
}

func (a *Authority) hostKey(ctx context.Context) (ssh.Signer, error) {
	host, _, err := a.load(ctx)
	return host, err
}

// HostKey returns the gateway's public host key, as a line of known_hosts without
// the host name, and its fingerprint.
func (a *Authority) HostKey(ctx context.Context) (line, fingerprint string, err error) {
	host, err := a.hostKey(ctx)
	if err != nil {
		return "", "", err
	}
	return authorizedKey(host.PublicKey()), ssh.FingerprintSHA256(host.PublicKey()), nil
}

// UserCA returns the public key of the CA in the format of authorized_keys.
func (a *Authority) UserCA(ctx context.Context) (string, error) {
	_, ca, err := a.load(ctx)
	if err != nil {
		return "", err
	}
	return authorizedKey(ca.PublicKey()), nil
}

// authorizedKey returns a key in the format of authorized_keys, without a line
// break.
func authorizedKey(k ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k)))
}

// certificateSlack is how long before and after now a certificate is valid, because
// guests' clocks may be wrong.
const certificateSlack = 5 * time.Minute

// certificate returns a new key with a certificate of the CA, which grants access
// to this instance only: guests have the CA in authorized_keys with their ID as
// principal (sshd(8), AUTHORIZED_KEYS FILE FORMAT).
func (a *Authority) certificate(ctx context.Context, to Access) (ssh.Signer, error) {
	_, ca, err := a.load(ctx)
	if err != nil {
		return nil, err
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	c := &ssh.Certificate{Key: signer.PublicKey(), CertType: ssh.UserCert, KeyId: fmt.Sprintf("basalt %s %s %s", to.Login, cmp.Or(string(to.Key), "shell"), to.Instance),
		ValidPrincipals: []string{string(to.Instance)},
		ValidAfter:      uint64(now.Add(-certificateSlack).Unix()), ValidBefore: uint64(now.Add(certificateSlack).Unix()),
		Permissions: ssh.Permissions{Extensions: map[string]string{"permit-pty": "", "permit-port-forwarding": "", "permit-user-rc": ""}}}
	if err := c.SignCert(rand.Reader, ca); err != nil {
		return nil, err
	}
	return ssh.NewCertSigner(c, signer)
}
