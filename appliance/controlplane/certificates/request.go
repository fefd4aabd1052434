package certificates

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/basalt-gpu/basalt/api"
)

// pair is a certificate with its private key, both PEM.
type pair struct {
	certificate, key string
	leaf             *x509.Certificate
}

// account is an account at a certificate authority.
type account struct {
	directory, email string
	key              crypto.Signer
	http             *http.Client
}

// maxSkew is how far the authority's clock may be ahead.
const maxSkew = 10 * time.Minute

// request requests a certificate for a host name. publish is called with each certificate
// that answers a challenge, and returns when all nodes can present it.
func (a account) request(ctx context.Context, host string, publish func(challenge pair) error, now time.Time) (pair, error) {
	c := &acme.Client{Key: a.key, DirectoryURL: a.directory, HTTPClient: a.http, UserAgent: "basalt", RetryBackoff: backoff}
	if err := a.register(ctx, c); err != nil {
		return pair{}, err
	}
	order, err := c.AuthorizeOrder(ctx, acme.DomainIDs(host))
	if err != nil {
		return pair{}, fmt.Errorf("order a certificate: %w", err)
	}
	for _, url := range order.AuthzURLs {
		if err := prove(ctx, c, url, host, publish); err != nil {
			return pair{}, err
		}
	}
	uri := order.URI
	if order, err = c.WaitOrder(ctx, uri); err != nil {
		return pair{}, fmt.Errorf("wait for the order: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("generate a key: %w", err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{host}}, key)
	if err != nil {
		return pair{}, fmt.Errorf("create a certificate request: %w", err)
	}
	chain, err := finalize(ctx, c, order.FinalizeURL, uri, csr)
	if err != nil {
		return pair{}, fmt.Errorf("fetch the certificate: %w", err)
	}
	out, err := encoded(chain, key)
	if err != nil {
		return pair{}, err
	}
	if early := out.leaf.NotBefore.Sub(now); early > 0 && early <= maxSkew {
		now = out.leaf.NotBefore
	}
	if _, err := api.ValidatePortalCertificate(host, api.PortalDomainSpec{Certificate: out.certificate, Key: out.key}, now); err != nil {
		return pair{}, fmt.Errorf("the certificate authority has issued another certificate than requested: %w", err)
	}
	return out, nil
}

// finalize sends the certificate request of an order that is ready, and returns the chain.
// acme.Client polls the order at the Location of the answer, which authorities need not send
// (RFC 8555, section 7.4): in that case the order is polled at its own address.
func finalize(ctx context.Context, c *acme.Client, url, order string, csr []byte) ([][]byte, error) {
	chain, _, err := c.CreateOrderCert(ctx, url, csr, true)
	if err == nil {
		return chain, nil
	}
	done, orderErr := c.WaitOrder(ctx, order)
	switch {
	case orderErr != nil:
		return nil, orderErr
	case done.CertURL == "": // it is still as before
		return nil, err
	}
	return c.FetchCert(ctx, done.CertURL, true)
}

// backoff returns the delay before an HTTP request is repeated, because its nonce was not
// valid or the server failed; negative: it is not. Too many requests are the manager's.
func backoff(n int, _ *http.Request, res *http.Response) time.Duration {
	const most = 4
	if n > most || res.StatusCode == http.StatusTooManyRequests {
		return -1
	}
	return time.Duration(n) * time.Second / 4
}

// register finds the account, or creates it.
func (a account) register(ctx context.Context, c *acme.Client) error {
	_, err := c.GetReg(ctx, "")
	if err == nil {
		return nil
	}
	if !errors.Is(err, acme.ErrNoAccount) {
		return fmt.Errorf("find the account: %w", err)
	}
	to := &acme.Account{}
	if a.email != "" {
		to.Contact = []string{"mailto:" + a.email}
	}
	if _, err := c.Register(ctx, to, acme.AcceptTOS); err != nil && !errors.Is(err, acme.ErrAccountAlreadyExists) {
		return fmt.Errorf("create an account: %w", err)
	}
	return nil
}

// prove answers the challenge of an authorization.
func prove(ctx context.Context, c *acme.Client, url, host string, publish func(pair) error) error {
	z, err := c.GetAuthorization(ctx, url)
	if err != nil {
		return fmt.Errorf("read the challenges: %w", err)
	}
	if z.Status == acme.StatusValid {
		return nil
	}
	if z.Identifier.Value != host {
		return fmt.Errorf("the certificate authority wants a proof of %.100q", z.Identifier.Value)
	}
	i := slices.IndexFunc(z.Challenges, func(c *acme.Challenge) bool { return c.Type == "tls-alpn-01" })
	if i < 0 {
		return errors.New("the certificate authority does not offer the challenge tls-alpn-01")
	}
	cert, err := c.TLSALPN01ChallengeCert(z.Challenges[i].Token, host)
	if err != nil {
		return fmt.Errorf("create the certificate of the challenge: %w", err)
	}
	answer, err := encoded(cert.Certificate, cert.PrivateKey)
	if err != nil {
		return err
	}
	if err := publish(answer); err != nil {
		return err
	}
	if _, err := c.Accept(ctx, z.Challenges[i]); err != nil {
		return fmt.Errorf("accept the challenge: %w", err)
	}
	if _, err := c.WaitAuthorization(ctx, z.URI); err != nil {
		return fmt.Errorf("prove the name: %w", err)
	}
	return nil
}

// encoded returns a chain of certificates and its key.
func encoded(chain [][]byte, key crypto.PrivateKey) (pair, error) {
	if len(chain) == 0 {
		return pair{}, errors.New("the certificate authority has sent no certificate")
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return pair{}, fmt.Errorf("read the certificate: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, fmt.Errorf("encode the key: %w", err)
	}
	out := pair{key: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), leaf: leaf}
	for _, c := range chain {
		out.certificate += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c}))
	}
	return out, nil
}

// signer returns the private key in a PEM text.
func signer(text string) (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the key of the account is not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the key of the account cannot be read") // without a part of the key
	}
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key of the account cannot sign")
	}
	return s, nil
}

// ChallengeConfig returns the configuration of a connection with which a certificate authority
// checks a challenge; nil: it is another connection. find returns the status of a host name as
// it is in the cluster now.
func ChallengeConfig(hello *tls.ClientHelloInfo, find func(host string) (api.CertificateStatus, error), open func(sealed string) (string, error)) (*tls.Config, error) {
	if len(hello.SupportedProtos) != 1 || hello.SupportedProtos[0] != acme.ALPNProto {
		return nil, nil
	}
	host := api.HostName(hello.ServerName)
	st, err := find(host)
	if err != nil {
		return nil, err
	}
	if st.ChallengeCertificate == "" || st.HostName != host {
		return nil, fmt.Errorf("no certificate is being requested for %.100q", host)
	}
	key, err := open(st.ChallengeKey)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair([]byte(st.ChallengeCertificate), []byte(key))
	if err != nil {
		return nil, errors.New("the certificate of the challenge cannot be read")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{acme.ALPNProto}, Certificates: []tls.Certificate{cert}}, nil
}
