package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certCheckEvery is how often the files are checked for a new certificate. Certificates are renewed
// days before they expire.
const certCheckEvery = time.Minute

// certFiles is a certificate and its key in files that another program renews.
type certFiles struct {
	cert, key, domain string
	log               *slog.Logger
	now               func() time.Time

	mu      sync.Mutex // guards what follows
	current *tls.Certificate
	of      time.Time // modification time of the file that it was read from
	next    time.Time // time of the next check
}

// openCert reads a certificate and checks that it is valid for all names below the domain.
func openCert(cert, key, domain string, log *slog.Logger) (*certFiles, error) {
	f := &certFiles{cert: cert, key: key, domain: domain, log: log, now: time.Now}
	var err error
	if f.current, f.of, err = f.read(); err != nil {
		return nil, err
	}
	f.next = f.now().Add(certCheckEvery)
	return f, nil
}

func (f *certFiles) read() (*tls.Certificate, time.Time, error) {
	st, err := os.Stat(f.cert)
	if err != nil {
		return nil, time.Time{}, err
	}
	cert, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read certificate %s and key %s: %w", f.cert, f.key, err)
	}
	if err := cert.Leaf.VerifyHostname("8888-000000000000." + f.domain); err != nil {
		return nil, time.Time{}, errors.Join(fmt.Errorf("certificate %s is not of *.%s", f.cert, f.domain), err)
	}
	return &cert, st.ModTime(), nil
}

// get is the GetCertificate function of a tls.Config. If changed files cannot be read, it
// returns the previous certificate, because the key may be written after the certificate.
func (f *certFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if now.Before(f.next) {
		return f.current, nil
	}
	f.next = now.Add(certCheckEvery)
	if st, err := os.Stat(f.cert); err == nil && st.ModTime().Equal(f.of) {
		return f.current, nil
	}
	cert, of, err := f.read()
	if err != nil {
		f.log.Warn("read renewed certificate of the app gateway failed, keeping the old one", "error", err)
		return f.current, nil
	}
	f.current, f.of = cert, of
	f.log.Info("the certificate of the app gateway was renewed", "until", cert.Leaf.NotAfter.UTC())
	return f.current, nil
}
