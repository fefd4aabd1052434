package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func (w *world) secretTries() []try {
	return []try{
		{"C10 secrets in what an operator reads", "in no list, no object, no trail", w.secretsRead},
		{"C10 secrets in changes", "in no line of a watch", w.secretsWatched},
		{"C10 secrets that only an operator gives", "kept, and in no answer", w.secretsGiven},
	}
}

// hidden returns the secrets that were given or shown once, and the stored hashes of
// tokens.
func (w *world) hidden() map[string]string {
	all := maps.Clone(w.secrets)
	for name, s := range w.secrets {
		parts := strings.Split(s, "_")
		if raw, err := hex.DecodeString(parts[len(parts)-1]); err == nil && len(parts) == 3 {
			sum := sha256.Sum256(raw)
			all["hash of "+name], all["end of "+name] = hex.EncodeToString(sum[:]), parts[2]
		}
	}
	return all
}

// tells returns an error if raw contains a secret.
func (w *world) tells(raw []byte) error {
	for name, s := range w.hidden() {
		if bytes.Contains(raw, []byte(s)) {
			return fmt.Errorf("the secret of %s is in it", name)
		}
	}
	return nil
}

func (w *world) secretsRead(ctx context.Context) error {
	all, err := operations()
	if err != nil {
		return err
	}
	paths := slices.Clone(w.made)
	for _, op := range all {
		if op.method == http.MethodGet && !strings.Contains(op.path, "{") && op.id != "Watch" && op.id != "BackupCluster" {
			paths = append(paths, op.path, op.path+"?organization="+w.victim.Meta.ID)
		}
	}
	return each(paths, func(path string) error {
		a, err := w.ask(ctx, w.op, http.MethodGet, path, nil)
		if err == nil {
			err = w.tells(a.raw)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return err
	})
}

func (w *world) secretsWatched(ctx context.Context) error {
	var wrong error
	err := w.watch(ctx, w.op, "since=0", func(line []byte) bool {
		var e api.Event
		wrong = errors.Join(json.Unmarshal(line, &e), w.tells(line))
		return wrong == nil && e.Type != api.EventSync
	})
	return errors.Join(err, wrong)
}

// secretsGiven creates objects that contain secrets of other systems, and reads them
// back.
func (w *world) secretsGiven(ctx context.Context) error {
	give := func(name string) string {
		s := "given-" + word() + word()
		w.secrets[name] = s
		return s
	}
	for path, spec := range map[string]any{
		"/v1/identity-providers": api.IdentityProviderSpec{Issuer: "https://id.example/", ClientID: "x", ClientSecret: give("provider")},
		"/v1/backup-targets":     map[string]any{"directory": "/var/backups/" + w.tag, "password": give("target")},
		"/v1/join-tokens":        map[string]any{"expiresAt": time.Now().UTC().Add(time.Hour).Truncate(time.Second)},
	} {
		a, err := w.ask(ctx, w.op, http.MethodPost, path, body{api.Meta{Name: w.tag + "-" + word()}, spec})
		if err != nil {
			return err
		}
		if a.Code == api.CodeUnavailable || a.Code == api.CodeState { // not a cluster
			continue
		}
		if _, err := w.taken(a, path); err != nil {
			return err
		}
		if err := w.tells(a.raw); err != nil {
			return fmt.Errorf("the answer that makes %s: %w", path, err)
		}
	}
	return errors.Join(w.secretsRead(ctx), w.secretsWatched(ctx))
}
