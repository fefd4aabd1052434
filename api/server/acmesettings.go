package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// acmeSettings defines the settings of certificates that are requested by ACME. The key of the
// account is created here, once for each directory.
func (h *handlers) acmeSettings() settings[none, api.StoredACMESettings, api.ACMESettings] {
	return settings[none, api.StoredACMESettings, api.ACMESettings]{
		what:  "certificate settings",
		unset: ofCluster(api.KindACMESettings, api.ACMESettingsID, "acme"),
		view: func(ctx context.Context, s api.StoredACMESettings) (api.ACMESettings, error) {
			portal, err := api.Settings[api.StoredACMESettings](ctx, h.opts.Store, api.KindACMESettings, api.ACMECertificateID)
			return s.View(portal.Status), err
		},
		spec: func(ctx context.Context, old api.StoredACMESettings, s api.ACMESettings) (any, error) {
			spec := s.Spec()
			if err := api.ValidateACMESettings(spec); err != nil {
				return nil, err
			}
			if spec.AccountKey = old.Spec.AccountKey; spec.AccountKey != "" && spec.DirectoryURL == old.Spec.DirectoryURL {
				return spec, nil
			}
			key, err := newAccountKey()
			if err != nil {
				return nil, err
			}
			spec.AccountKey, err = h.auth.Sealed(ctx, key)
			if err != nil {
				return nil, fmt.Errorf("encrypt the key of the account: %w", err)
			}
			return spec, nil
		},
		beside: func(api.StoredACMESettings) []api.Command {
			return []api.Command{{Op: api.OpPutSpec, Kind: api.KindACMESettings, ID: api.ACMECertificateID, Expect: api.AnyRevision, Name: "acme-certificate", Data: api.Encode(struct{}{})}}
		},
	}
}

// newAccountKey returns a new private key (PEM).
func newAccountKey() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("generate the key of the account: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("encode the key of the account: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}
